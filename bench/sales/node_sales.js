// Total sales for Node over a LevelDB store, as books on Node show it: plain, with equal requests batched, and cached for 30 s
// by callbacks (each hit is logged and answered at the next tick) or by keeping the promise.
//   node node_sales.js load FOLDER N            so many sales of ten items
//   node node_sales.js serve FOLDER PORT plain|batched|cached|promised
// Each total reads every sale of the store as a stream.
'use strict'
const http = require('http')
const url = require('url')
const { Level } = require('level')

const [, , deed, folder, argument, mode] = process.argv
const db = new Level(folder, { valueEncoding: 'json' })
const sales = db.sublevel('sales', { valueEncoding: 'json' })

function totalSales (item, callback) {
  console.log('a total is computed')
  sum(item).then(total => callback(null, total), callback)
}

async function sum (item) {
  let total = 0
  for await (const sale of sales.values()) {
    if (!item || sale.item === item) total += sale.amount
  }
  return total
}

// One run for all who ask at the same time.
const waiting = new Map()
function batched (item, callback) {
  const others = waiting.get(item)
  if (others) {
    console.log('joined')
    return others.push(callback)
  }
  waiting.set(item, [callback])
  totalSales(item, (error, total) => {
    const all = waiting.get(item)
    waiting.delete(item)
    for (const one of all) one(error, total)
  })
}

// The same, and what it came to is kept.
const kept = new Map()
function cached (item, callback) {
  if (kept.has(item)) {
    console.log('hit')
    return process.nextTick(callback, null, kept.get(item))
  }
  batched(item, (error, total) => {
    if (!error && !kept.has(item)) {
      kept.set(item, total)
      setTimeout(() => kept.delete(item), 30_000)
    }
    callback(error, total)
  })
}

// The promise itself is kept: whoever comes while it is pending waits with the others.
const promises = new Map()
function promised (item, callback) {
  let promise = promises.get(item)
  if (promise === undefined) {
    console.log('a total is computed')
    promise = sum(item)
    promises.set(item, promise)
    promise.then(() => setTimeout(() => promises.delete(item), 30_000), () => promises.delete(item))
  }
  promise.then(total => callback(null, total), callback)
}

async function load (count) {
  const items = ['book', 'game', 'app', 'song', 'movie', 'lamp', 'chair', 'tea', 'shoe', 'pen']
  for (let from = 0; from < count; from += 10_000) {
    const batch = sales.batch()
    for (let n = from; n < Math.min(from + 10_000, count); n++) {
      batch.put(`transaction-${n}`, { item: items[n % items.length], amount: 1 + n % 100 })
    }
    await batch.write()
  }
  await db.close()
}

function serve (port) {
  const total = { plain: totalSales, batched, cached, promised }[mode]
  http.createServer((request, response) => {
    const { item } = url.parse(request.url, true).query
    total(item, (error, sum) => {
      response.writeHead(error ? 500 : 200)
      response.end(error ? String(error) : `Total sales for item ${item} is ${sum}`)
    })
  }).listen(port, '127.0.0.1', () => console.log('ready'))
}

// A sublevel opens by itself, but later than its store.
db.open().then(() => sales.open()).then(() => deed === 'load' ? load(Number(argument)) : serve(Number(argument)))
