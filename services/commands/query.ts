import { runQueryProcess } from '../query/main.ts'
import { readConfig } from '../runtime/config.ts'
import { createLogger } from '../runtime/ops/logger.ts'
import { type Command, readArguments } from './command.ts'
import { untilInterrupted } from './until-interrupted.ts'

export const queryCommand: Command = {
  help: {
    call: 'query',
    does:
      'Serves the API from the tables of a ClickHouse server, until it is interrupted. Start as many as you like behind a ' +
      'load balancer. The settings come from the environment (deploy/pledgeview.env.example).',
    examples: ['query'],
    cost: 'Caches and the list index take memory: see PLEDGEVIEW_CACHE_BYTES_MAX and PLEDGEVIEW_LIST_INDEX_CAMPAIGNS_MAX.',
  },

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
