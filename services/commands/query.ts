import { runQueryProcess } from '../query/main.ts'
import { readConfig } from '../shared/config.ts'
import { createLogger } from '../shared/logger.ts'
import { type Command, readArguments } from './command.ts'
import { untilInterrupted } from './until-interrupted.ts'

export const queryCommand: Command = {
  usage: `usage: pledgeview query

Serves the API from the tables of a ClickHouse server, until it is interrupted. Settings come from the environment:
deploy/pledgeview.env.example.`,

  async run(args, io) {
    readArguments({ args, options: {} })
    const config = readConfig(process.env)
    const logger = createLogger(config.PLEDGEVIEW_LOG_LEVEL)
    return untilInterrupted(logger, signal =>
      runQueryProcess({
        config,
        logger,
        signal,
        onReady: ({ apiUrl, opsUrl }) => io.stdout.write(`Pledgeview serves ${apiUrl} (ops: ${opsUrl})\n`),
      }),
    )
  },
}
