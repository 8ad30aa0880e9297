/**
 * A process that locks a data directory and projects its journal. Tests may kill it at any time.
 *
 *     fork('test/support/projector/projector-child.ts', [DATA_DIRECTORY])
 *
 * It sends `open` once it projects. On the message `clickhouse` it sends the process id of its ClickHouse. On the message `work` it sends
 * `worked`, once it has written a batch. On any other message it waits until everything is folded, closes and exits with 0. It ends at once when its parent has gone.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { openDataDirectory } from '../../../services/embedded/data-directory.ts'
import { openEmbeddedModel } from '../../../services/embedded/model.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'

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
process.once('disconnect', () => process.exit())
process.on('message', async message => {
  if (message === 'clickhouse') {
    process.send?.({ clickHouse: model.clickHouse.pid() })
    return
  }
  if (message === 'work') {
    while (model.projector.health().records === 0) await sleep(5)
    process.send?.('worked')
    return
  }
  await model.whenDrained()
  await model.close()
  process.disconnect()
})
process.send?.('open')
