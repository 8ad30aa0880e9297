/** The arguments of `npm run stack`: its ports, each with the flag that changes it. */
import { parseArgs } from 'node:util'
import { isFree } from '../../../services/runtime/free-port.ts'

/** By flag: the port, and what listens there. */
const places = {
  'api-port': [8080, 'query service 1'],
  'api-2-port': [8090, 'query service 2'],
  'portal-port': [8081, 'the portal'],
  'registry-port': [8082, 'the schema registry'],
  'clickhouse-port': [8123, 'ClickHouse, HTTP; with --shards free ports are taken'],
  'kafka-port': [9094, 'Kafka'],
  'redis-port': [6379, 'Redis'],
  'prometheus-port': [9091, 'Prometheus, if it is installed'],
  'ops-port': [9101, 'the first of five: query services, portal, projectors'],
} as const
const opsPorts = 5
const shardsMax = 8
const portMax = 65_535

type Flag = keyof typeof places
export type Ports = Readonly<Record<Flag, number>>

export type StackArguments = NonNullable<ReturnType<typeof readArguments>>

/** What is wrong with the arguments or the machine, in words for the reader. No stack trace is shown. */
export class StackError extends Error {
  readonly code: 1 | 2
  constructor(message: string, code: 1 | 2) {
    super(message)
    this.code = code
  }
}

export const helpText = `npm run stack -- [OPTIONS]

Runs the distributed form on this machine like a small production: Kafka, ClickHouse, Redis, a schema registry, two projectors, two query
services, the portal and, if it is installed, Prometheus with the alert rules. It loads the demo platform and issues a key. A part that
ends is reported, with the reason, and started again. Ctrl-C stops everything and removes its data.

  --shards N              ClickHouse as a cluster of N servers (1 to ${shardsMax}), each of which is a shard
  --no-demo               no demo platform
${Object.entries(places)
  .map(([flag, [port, what]]) => `  ${`--${flag} N`.padEnd(24)}${what} (${port})`)
  .join('\n')}
  --help                  this text
`

/** `undefined`: the help is asked for. Throws `StackError`. */
export function readArguments(args: readonly string[]) {
  const option = { type: 'string' } as const
  let values: Record<string, string | boolean | undefined>
  try {
    const flags = Object.fromEntries(Object.keys(places).map(flag => [flag, option]))
    const others = { shards: option, 'no-demo': { type: 'boolean' }, help: { type: 'boolean' } } as const
    values = parseArgs({ args: [...args], options: { ...flags, ...others } }).values
  } catch (cause) {
    throw new StackError(`${(cause as Error).message}\n--help lists the options.`, 2)
  }
  if (values.help) return undefined
  const number = (flag: string, max: number) => {
    const value = Number(values[flag])
    if (Number.isInteger(value) && value >= 1 && value <= max) return value
    throw new StackError(`--${flag} takes a number from 1 to ${max}, not ${values[flag]}`, 2)
  }
  const entries = Object.entries(places).map(([flag, [port]]) => [
    flag,
    values[flag] === undefined ? port : number(flag, portMax),
  ])
  return {
    ports: Object.fromEntries(entries) as Ports,
    /** `undefined`: one server, and no cluster. */
    shards: values.shards === undefined ? undefined : number('shards', shardsMax),
    hasDemo: !values['no-demo'],
  }
}

/** Throws a `StackError` that names each port that is taken, with its flag. */
export async function checkPorts(ports: Ports, ignored: readonly Flag[]): Promise<void> {
  const all = (Object.keys(places) as Flag[]).filter(flag => !ignored.includes(flag))
  const taken: string[] = []
  for (const flag of all) {
    const [, what] = places[flag]
    for (let port = ports[flag]; port < ports[flag] + (flag === 'ops-port' ? opsPorts : 1); port++)
      if (!(await isFree(port))) taken.push(`port ${port} is taken (${what}): give another with --${flag}`)
  }
  if (taken.length > 0) throw new StackError(taken.join('\n'), 1)
}
