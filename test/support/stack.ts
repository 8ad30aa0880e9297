/**
 * `npm run stack`: the distributed form on this machine, for a person to play with: real Kafka, ClickHouse as chDB behind
 * the HTTP door, two projectors and a query service as processes of their own. Ctrl-C ends all of it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type ClickHouseDoor, startClickHouseDoor } from './clickhouse-door.ts'
import { type KafkaBroker, startKafka } from './kafka/broker.ts'
import { kafkaRequirement } from './kafka/jars.ts'

const cli = new URL('../../services/cli.ts', import.meta.url).pathname

export interface StackProcess {
  child: ChildProcess
  /** What the process said of its addresses. */
  said: string
}

export interface Stack {
  /** What the commands have to find in their environment to work on this stack. */
  environment: Record<string, string>
  kafka: KafkaBroker
  clickHouse: ClickHouseDoor
  /** Starts one more process of a service, and resolves once it says that it runs. */
  start(service: 'projector' | 'query', settings?: Record<string, string>): Promise<StackProcess>
  stop(): Promise<void>
}

/** Starts broker and door and brings topics and tables up to date; no service yet. */
export async function startStack(): Promise<Stack> {
  const jars = await kafkaRequirement('4.4.0')
  if (!jars.isMet) throw new Error(jars.reason)
  const kafka = await startKafka('4.4.0')
  const clickHouse = await startClickHouseDoor()
  const secret = () => randomBytes(32).toString('hex')
  const environment = {
    PLEDGEVIEW_KAFKA_BROKERS: kafka.address,
    PLEDGEVIEW_CLICKHOUSE_URL: clickHouse.url,
    PLEDGEVIEW_KEY_PEPPER: secret(),
    PLEDGEVIEW_BACKER_KEY: secret(),
    PLEDGEVIEW_PORT: '0',
    PLEDGEVIEW_OPS_PORT: '0',
  }
  const processes: ChildProcess[] = []
  const run = (args: string[], settings: Record<string, string> = {}) =>
    spawn(process.execPath, [cli, ...args], {
      env: { ...process.env, ...environment, ...settings },
      stdio: ['ignore', 'pipe', 'inherit'],
    })

  const migrating = run(['migrate'])
  await once(migrating, 'exit')
  if (migrating.exitCode !== 0) throw new Error('the stack could not be migrated')

  return {
    environment,
    kafka,
    clickHouse,
    async start(service, settings) {
      const child = run([service], settings)
      processes.push(child)
      const said = await new Promise<string>((resolve, reject) => {
        let output = ''
        child.stdout.on('data', (data: Buffer) => {
          output += data.toString()
          if (output.includes('(ops: ')) resolve(output.trim())
        })
        child.on('exit', code => reject(new Error(`the ${service} ended with ${code}`)))
      })
      return { child, said }
    },
    async stop() {
      for (const child of processes) {
        if (child.exitCode !== null || child.signalCode !== null) continue
        child.kill('SIGINT')
        await once(child, 'exit')
      }
      await clickHouse.stop()
      await kafka.stop()
    },
  }
}

async function main(): Promise<void> {
  const stack = await startStack()
  for (const service of ['projector', 'projector', 'query'] as const) {
    const { said } = await stack.start(service)
    process.stdout.write(`${said}\n`)
  }
  const settings = Object.entries(stack.environment).map(([name, value]) => `export ${name}=${value}`)
  process.stdout.write(
    `\nFor the commands (events append, keys, migrate), in another terminal:\n\n${settings.join('\n')}\n`,
  )
  await once(process, 'SIGINT')
  await stack.stop()
}

if (import.meta.main) await main()
