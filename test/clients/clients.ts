/**
 * The programs in this folder. Each uses a third-party client: it logs in as an analyst, does ordinary work on the views, and
 * prints the results. Its dependencies come from PyPI, Maven Central or the Go module proxy, in the versions that its folder
 * pins, and are cached in node_modules/.cache (Go uses its own module cache).
 *
 * The dependencies are a requirement like any other: without Python, a JDK, Maven, Go or the network, the suite is skipped with
 * the reason.
 */
import { basename, join } from 'node:path'
import { folderOf, type Jars, jarsRequirement } from '../support/kafka/jars.ts'
import { cacheFolder, fetched, quickBuild, requirementOf, withoutC } from '../support/runner/programs.ts'
import type { Requirement } from '../support/runner/requirements.ts'
import { cacheOf, outputOf, path, pythonEnvironment } from './programs.ts'

export interface Client<S> {
  /** Downloads and builds what is missing. Never rejects: the requirement's reason says what is not available. */
  requirement(): Promise<Requirement>
  /** Throws with the end of the program's output if it fails. */
  run(job: Job): Promise<S>
}

export interface Job {
  host: string
  httpPort: number
  nativePort: number
  user: string
  database: string
}

/** A row as a program prints it; Python: every number as text, times as ISO 8601. */
export type Row = Record<string, unknown>

/** Why an operation was refused; `null` if it succeeded. */
export type Refusal = { code: number; message: string } | null

/** The output of every client. */
export interface Seen {
  columns: { view: string; name: string; type: string; comment: string }[]
  campaigns: Row[]
  rewards: Row[]
  categories: Row[]
  totals: Row[]
  /** For a table that analysts may not read. */
  forbidden: Refusal
  /** For a query that fails after a part of its result has arrived. */
  broken: Refusal
  /** `max_threads` in a query that sets it to 1 and has a time limit of 30 s. */
  withinBounds: number
}

export interface PythonSeen extends Seen {
  frame: TypedRows
  /** What pandas says of a frame as it is: the columns that it describes, and sums. */
  summary: { described: string[]; byCategory: Record<string, number> }
  arrow: TypedRows
  parquet: TypedRows
}

interface TypedRows {
  types: Record<string, string>
  rows: Row[]
}

export interface JavaSeen extends Seen {
  databases: string[]
  views: string[]
  /** Why a running query could not be cancelled. */
  cancelled: Refusal
  dbeaver: { engines: number; tables: number; definition: string }
}

export interface GoSeen extends Seen {
  grafana: Refusal
  cancelled: { query: Refusal; nextAfterMs: number }
}

const python = pythonEnvironment('clickhouse-connect', path('python/requirements.txt'))

export const clickHouseConnect: Client<PythonSeen> = {
  requirement: python.requirement,
  run: job => run(python.program('python'), [path('python/client.py')], job),
}

const pom = path('java/pom.xml')
const jars: Jars = { name: basename(cacheOf('sql-client-java', pom)), pom, versions: {} }

export const clickHouseJdbc: Client<JavaSeen> = {
  // Java runs a source file only with its compiler.
  async requirement() {
    const compiler = await requirementOf('javac', async () => {
      await outputOf('javac', ['-version'])
    })
    return compiler.isMet ? jarsRequirement(jars) : compiler
  },
  run: job => run('java', ['-cp', `${folderOf(jars)}/*`, path('java/Client.java')], job),
}

const goProgram = join(cacheFolder, 'sql-client-go')

export const clickHouseGo: Client<GoSeen> = {
  requirement: () =>
    // Go itself detects what is up to date.
    requirementOf('clickhouse-go', () =>
      fetched('go', ['-C', path('go'), 'build', ...quickBuild, '-o', goProgram, '.'], {
        environment: withoutC,
      }),
    ),
  run: job => run(goProgram, [], job),
}

async function run<S>(program: string, args: readonly string[], job: Job): Promise<S> {
  return JSON.parse(await outputOf(program, args, { stdin: JSON.stringify(job) }))
}
