import { runProjectorProcess } from '../projector/main.ts'
import { readConfig } from '../shared/config.ts'
import { createLogger } from '../shared/logger.ts'
import { type Command, readArguments } from './command.ts'
import { untilInterrupted } from './until-interrupted.ts'

export const projectorCommand: Command = {
  usage: `usage: pledgeview projector

Projects the topics of a Kafka cluster into the tables of a ClickHouse server, until it is interrupted. Any number of them
share the work. Settings come from the environment: deploy/pledgeview.env.example.`,

  async run(args, io) {
    readArguments({ args, options: {} })
    const config = readConfig(process.env)
    const logger = createLogger(config.PLEDGEVIEW_LOG_LEVEL)
    return untilInterrupted(logger, signal =>
      runProjectorProcess({
        config,
        logger,
        signal,
        onReady: ({ opsUrl }) => io.stdout.write(`The projector runs (ops: ${opsUrl})\n`),
      }),
    )
  },
}
