/**
 * A process that holds a data directory and projects its journal, to be killed at any moment.
 *
 *     fork('test/support/projector-child.ts', [DATA_DIRECTORY])
 *
 * It says `open` once it projects. Told anything, it waits until all is folded, closes and ends with 0.
 */
import { pino } from 'pino'
import { openDataDirectory } from '../../services/embedded/data-directory.ts'
import { openEmbeddedModel } from '../../services/embedded/model.ts'
import { readConfig } from '../../services/shared/config.ts'
import { createMetrics } from '../../services/shared/metrics.ts'

const [directory = ''] = process.argv.slice(2)
const model = await openEmbeddedModel({
  directory: openDataDirectory(directory),
  config: readConfig(process.env),
  metrics: createMetrics(),
  logger: pino({ level: 'error' }, pino.destination({ dest: 2, sync: true })),
})
model.stopped.then(error => {
  if (!error) return
  process.stderr.write(`${error.stack}\n`)
  process.exit(1)
})
process.on('message', async () => {
  await model.whenDrained()
  await model.close()
  process.disconnect()
})
process.send?.('open')
