import { watchAttempts } from '../generations/attempts.ts'
import { rebuildUnderWay } from '../generations/rebuild-log.ts'
import { runProjectorProcess } from '../projector/main.ts'
import { readConfig } from '../runtime/config.ts'
import { createLogger } from '../runtime/ops/logger.ts'
import { sleep } from '../runtime/sleep.ts'
import { type Command, readArguments } from './command.ts'
import { untilInterrupted } from './until-interrupted.ts'

export const projectorCommand: Command = {
  help: {
    call: 'projector',
    does:
      'Projects the topics of a Kafka cluster into the tables of a ClickHouse server, until it is interrupted. Start as many ' +
      'as you like: they share the partitions. The settings come from the environment (deploy/pledgeview.env.example).',
    examples: ['projector'],
    cost: 'Memory for two batches (PLEDGEVIEW_BATCH_BYTES_MAX) and what is fetched ahead. An interrupt ends it within 15 s, without loss.',
  },

  async run(args, io) {
    readArguments({ args, options: {} })
    const config = readConfig(process.env)
    const logger = createLogger(config.PLEDGEVIEW_LOG_LEVEL)
    return untilInterrupted(logger, signal =>
      runProjectorProcess({
        config,
        logger,
        signal,
        attempts: place => watchAttempts({ ...place, monotonicMs: () => performance.now(), sleep }),
        rebuild: rebuildUnderWay,
        onReady: ({ opsUrl }) => io.stdout.write(`The projector runs (ops: ${opsUrl})\n`),
      }),
    )
  },
}
