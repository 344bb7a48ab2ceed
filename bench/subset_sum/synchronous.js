// The synchronous way of the program this replaces, told in its own words: every subset is built by recursion, its
// number is told, its sum is taken anew, and one that has the wanted sum is emitted as an event.
'use strict';
const { EventEmitter } = require('node:events');
const { openSync, writeSync } = require('node:fs');

class Subsets extends EventEmitter {
  constructor(wanted, numbers, tell) {
    super();
    Object.assign(this, { wanted, numbers, tell, seen: 0 });
  }

  start() {
    this.grow(this.numbers, []);
    this.emit('end');
  }

  grow(rest, chosen) {
    for (let place = 0; place < rest.length; place++) {
      const larger = chosen.concat(rest[place]);
      this.grow(rest.slice(place + 1), larger);
      this.look(larger);
    }
  }

  look(subset) {
    this.seen += 1;
    this.tell(this.seen, subset);
    if (subset.reduce((sum, number) => sum + number, 0) === this.wanted) this.emit('match', subset);
  }
}

// The original prints every subset. `quiet` leaves that out: then only its computing is measured.
const [data, sum, quiet] = process.argv.slice(2);
const nowhere = openSync('/dev/null', 'w');
const tell = quiet === 'quiet' ? () => {} : (seen, subset) => writeSync(nowhere, `Subset ${seen} ${subset}\n`);
const search = new Subsets(Number(sum), JSON.parse(data), tell);
let matches = 0;
search.on('match', () => { matches += 1; });
const begun = process.hrtime.bigint();
search.start();
const seconds = Number(process.hrtime.bigint() - begun) / 1e9;
console.log(JSON.stringify({ seconds, matches }));
