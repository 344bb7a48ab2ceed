// Total sales for Node over a LevelDB store: plain, with equal requests batched, and cached for 30 s.
//   node node_sales.js load FOLDER N            so many sales of ten items
//   node node_sales.js serve FOLDER PORT plain|batched|cached
// Each total reads every sale of the store as a stream.
'use strict'
const http = require('http')
const { Level } = require('level')

const [, , deed, folder, argument, mode] = process.argv
const db = new Level(folder, { valueEncoding: 'json' })
const sales = db.sublevel('sales', { valueEncoding: 'json' })

async function totalSales (item) {
  let sum = 0
  for await (const sale of sales.values()) {
    if (item === undefined || sale.item === item) sum += sale.amount
  }
  return sum
}

// One run for all who ask at the same time.
const underWay = new Map()
function batched (item) {
  let run = underWay.get(item)
  if (run === undefined) {
    run = totalSales(item).finally(() => underWay.delete(item))
    underWay.set(item, run)
  }
  return run
}

// The promise itself is kept: whoever comes while it is pending waits with the others.
const kept = new Map()
function cached (item) {
  let run = kept.get(item)
  if (run === undefined) {
    run = totalSales(item)
    kept.set(item, run)
    run.then(() => setTimeout(() => kept.delete(item), 30_000), () => kept.delete(item))
  }
  return run
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
  const total = { plain: totalSales, batched, cached }[mode]
  http.createServer((request, response) => {
    const item = new URL(request.url, 'http://localhost').searchParams.get('item') ?? undefined
    total(item).then(sum => {
      response.writeHead(200)
      response.end(`Total sales for item ${item} is ${sum}`)
    }, error => {
      response.writeHead(500)
      response.end(String(error))
    })
  }).listen(port, '127.0.0.1', () => console.log('ready'))
}

// A sublevel opens by itself, but later than its store.
db.open().then(() => sales.open()).then(() => deed === 'load' ? load(Number(argument)) : serve(Number(argument)))
