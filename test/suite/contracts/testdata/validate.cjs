// Has AsyncAPI's parser judge the documents of a list, which comes as JSON on standard input: node validate.cjs PARSER.
// It answers the list of what it found wrong with each. Warnings and remarks are left out, but for what they say about a
// schema that it could not read.
globalThis.self = globalThis // the parser is the bundle for browsers
const Parser = require(process.argv[2])

async function main() {
  const documents = JSON.parse(require('fs').readFileSync(0, 'utf8'))
  const found = []
  for (const document of documents) {
    const { diagnostics } = await new Parser().parse(document)
    found.push(diagnostics.filter(d => d.severity === 0 || /schema parser/.test(d.message))
      .map(d => `${d.path.join('/')}: ${d.message}`))
  }
  process.stdout.write(JSON.stringify(found))
}

main().catch(error => { console.error(error.message); process.exit(1) })
