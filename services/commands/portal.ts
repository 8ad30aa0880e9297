import { runPortalProcess } from '../portal/main.ts'
import { readConfig } from '../runtime/config.ts'
import { createLogger } from '../runtime/ops/logger.ts'
import { type Command, readArguments } from './command.ts'
import { untilInterrupted } from './until-interrupted.ts'

export const portalCommand: Command = {
  help: {
    call: 'portal',
    does:
      'Serves the developer portal from Kafka, ClickHouse and Redis, until it is interrupted. Start as many as you like behind a ' +
      'load balancer. The settings come from the environment (deploy/pledgeview.env.example).',
    examples: ['portal'],
    cost: 'It keeps all accounts in memory: about 1 KB each.',
  },

  async run(args, io) {
    readArguments({ args, options: {} })
    const config = readConfig(process.env)
    const logger = createLogger(config.PLEDGEVIEW_LOG_LEVEL)
    return untilInterrupted(logger, signal =>
      runPortalProcess({
        config,
        logger,
        signal,
        onReady: ({ portalUrl, listensOn, opsUrl }) =>
          io.stdout.write(`The portal ${portalUrl} is served on ${listensOn} (ops: ${opsUrl})\n`),
      }),
    )
  },
}
