/**
 * ClickHouse in virtual time, as the simulated processes see it. A statement is stamped when it starts, reads then or later,
 * and makes its rows visible when it ends. Fates decide when that is, and whether the caller learns of it.
 */
import {
  type Statement,
  type TableInsert,
  type Tables,
  TablesError,
} from '../../../services/shared/tables/port.ts'
import type { Engine } from './engine.ts'
import type { Fates, WriteFate } from './fates.ts'
import { aloneMsMax, type HeavyCampaign } from './heavy-campaign.ts'
import { createReplicas, type ReplicasDependencies } from './replicas.ts'
import type { CampaignWriteKind, KindOf } from './statement-kinds.ts'
import type { VirtualTime } from './virtual-time.ts'

/** The state of a process that may be paused or dead. `awake` resolves when it continues; for a dead one, never. */
export interface Life {
  awake(): Promise<void>
}

export interface ClickHouse {
  /** ClickHouse's clock, Unix ms. It steps now and then. */
  clock(): number
  /** The highest time that the clock has shown. */
  clockMax(): number
  /** Sets the clock forward or, by a negative time, back. */
  stepClock(byMs: number): void
  /** The tables as a projector with this life and this commit horizon sees them. */
  connect(life: Life, horizonMs: number): Tables
  /** The tables as the query service sees them. */
  connectReader(): Pick<Tables, 'rows'>
  /** Statements that may still make something visible. */
  running(): number
  /** Times at which campaigns became visible later than the horizon promises to pollers. */
  lateLandings(): number
  /** Folds of campaigns that were set aside. */
  foldsAlone(): number
}

export interface ClickHouseDependencies {
  engine: Engine
  kindOf: KindOf
  time: VirtualTime
  fates: Fates
  /** A campaign whose fold takes longer than the common fold may take. */
  heavy: HeavyCampaign | undefined
  /** Whether a campaign that is folded alone is staged, and not shown under the stamp of its start. */
  isStaging: boolean
  /** Set if the tables are on several replicas. */
  replicas?: Omit<ReplicasDependencies, 'time' | 'whileRunning'> | undefined
  /** Ms since the world's start. */
  elapsedMs: () => number
}

export function createClickHouse(dependencies: ClickHouseDependencies): ClickHouse {
  const { engine, kindOf, time, fates, heavy, isStaging, elapsedMs } = dependencies
  let running = 0
  let lateLandings = 0
  let steppedMs = 0
  let clockMax = 0
  let foldsAlone = 0

  function clock(): number {
    const now = time.now() + steppedMs
    clockMax = Math.max(clockMax, now)
    return now
  }

  /** Continues even if no caller waits for it. */
  async function whileRunning<T>(work: () => Promise<T>): Promise<T> {
    running++
    try {
      return await work()
    } finally {
      running--
    }
  }

  const replicas = dependencies.replicas && createReplicas({ ...dependencies.replicas, time, whileRunning })

  async function writeCampaigns({ statement, kind, horizonMs }: Writing, runMs: number, some = false) {
    const startedAt = time.now()
    const stampedAt = clock()
    // Some statements read well after their stamp. What they show can only be newer because of it.
    const readAfterMs = runMs % 3 === 0 ? Math.floor(runMs / 2) : 0
    if (readAfterMs > 0) await time.sleep(readAfterMs)
    const staged = await time.outside(engine.stage(statement, kind, stampedAt))
    const publish = async () => {
      await time.outside(staged.publish({ onlySome: some }))
      if (time.now() - startedAt > horizonMs) lateLandings++
    }
    const checkAfterMs = Math.floor((runMs - readAfterMs) / 2)
    if (replicas) {
      await time.sleep(checkAfterMs)
      await replicas.check()
    }
    await time.sleep(runMs - readAfterMs - (replicas ? checkAfterMs : 0))
    if (!replicas) return publish()
    if (staged.rows > 0) {
      await replicas.commit({ publish, msLeft: startedAt + horizonMs / 2 - time.now() })
    }
  }

  async function suffer(writing: Writing, fate: WriteFate): Promise<void> {
    switch (fate.type) {
      case 'seen':
        return whileRunning(() => writeCampaigns(writing, fate.runMs))
      case 'unseen':
        whileRunning(() => writeCampaigns(writing, fate.runMs)).catch(ignoreTablesError)
        await time.sleep(fate.lostAfterMs)
        throw lostConnection()
      case 'never':
        await time.sleep(fate.lostAfterMs)
        throw lostConnection()
      case 'ended': {
        const { someAfterMs } = fate
        if (someAfterMs !== undefined) {
          whileRunning(() => writeCampaigns(writing, someAfterMs, true)).catch(ignoreTablesError)
        }
        await time.sleep(writing.horizonMs / 2)
        throw timeExceeded()
      }
      default:
        return fate satisfies never
    }
  }

  async function isHeavy(statement: Statement): Promise<boolean> {
    if (!heavy || elapsedMs() < heavy.fromMs) return false
    return (await engine.touchedBy(statement)).includes(heavy.id)
  }

  async function fold(statement: Statement, horizonMs: number): Promise<void> {
    const fate = fates.write(horizonMs)
    const someAfterMs = fate.type === 'seen' ? undefined : 0
    const own: WriteFate = (await isHeavy(statement)) ? { type: 'ended', someAfterMs } : fate
    await suffer({ statement, kind: 'fold', horizonMs }, own)
  }

  /** Only stages a row. So it does not matter to pollers when it ends, nor what becomes of it if nothing waits for it. */
  async function foldAlone(statement: Statement, horizonMs: number): Promise<void> {
    const fate = fates.write(horizonMs)
    const ownMs = (await isHeavy(statement)) ? heavy?.aloneMs : undefined
    const ranMs = ownMs ?? (fate.type === 'seen' ? fate.runMs : horizonMs / 4)
    foldsAlone++
    if (!isStaging && ranMs <= aloneMsMax) {
      return writeCampaigns({ statement, kind: 'fold', horizonMs }, ranMs)
    }
    // It reads the ledger early, so that it stages what is stale by the time it ends.
    if (fate.type !== 'never') await time.outside(engine.run(statement, 'fold alone', clock()))
    await time.sleep(Math.min(ranMs, aloneMsMax))
    if (ranMs > aloneMsMax || fate.type === 'ended') throw timeExceeded()
    if (fate.type !== 'seen') throw lostConnection()
  }

  async function writeSmall(work: () => Promise<void>): Promise<void> {
    const fate = fates.smallWrite()
    await time.sleep(fates.smallRunMs())
    if (fate !== 'never') await time.outside(work())
    if (fate !== 'seen') throw lostConnection()
  }

  function run(statement: Statement, horizonMs: number): Promise<void> {
    const kind = kindOf(statement)
    switch (kind) {
      case 'fold':
        return fold(statement, horizonMs)
      case 'publish':
      case 'restamp':
      case 'until decided':
        return suffer({ statement, kind, horizonMs }, fates.write(horizonMs))
      case 'fold alone':
        return whileRunning(() => foldAlone(statement, horizonMs))
      case 'record':
      case 'take epoch':
      case 'advance floor':
      case 'record set aside':
      case 'drop staged':
      case 'close days':
      case 'note latest days':
      case 'record close':
        return writeSmall(() => engine.run(statement, kind, clock()))
      default:
        throw new Error(`${kind} is no statement that writes`)
    }
  }

  async function read<Row>(statement: Statement, runMs: number): Promise<Row[]> {
    const startedAt = clock()
    const readAfterMs = Math.floor(runMs / 2)
    await time.sleep(readAfterMs)
    const rows = (await time.outside(engine.read(statement, startedAt))) as Row[]
    await time.sleep(runMs - readAfterMs)
    return rows
  }

  return {
    running: () => running,
    lateLandings: () => lateLandings,
    foldsAlone: () => foldsAlone,
    clock,
    clockMax: () => clockMax,
    stepClock(byMs) {
      clock()
      steppedMs += byMs
    },

    connect(life, horizonMs) {
      /** There and back. A process that was stopped meanwhile continues from here when it wakes. */
      async function call<T>(work: () => Promise<T>): Promise<T> {
        await life.awake()
        await time.sleep(fates.wayMs())
        try {
          return await work()
        } finally {
          await time.sleep(fates.wayMs())
          await life.awake()
        }
      }
      return {
        rows: <Row>(statement: Statement) =>
          call(() => {
            replicas?.read()
            return read<Row>(statement, fates.smallRunMs())
          }),
        run: statement => call(() => run(statement, horizonMs)),
        insert: (insert: TableInsert) => call(() => writeSmall(() => engine.insert(insert))),
        close: async () => {},
      }
    },

    connectReader: () => ({
      async rows<Row>(statement: Statement) {
        await time.sleep(fates.wayMs())
        const runMs = fates.queryRunMs()
        if (runMs === undefined) throw lostConnection()
        const rows = await read<Row>(statement, runMs)
        await time.sleep(fates.wayMs())
        return rows
      },
    }),
  }
}

/** A statement of a fold worker with this commit horizon. */
interface Writing {
  statement: Statement
  kind: CampaignWriteKind
  horizonMs: number
}

/** Its caller has lost the connection, or is told another error. */
function ignoreTablesError(error: unknown): void {
  if (!(error instanceof TablesError)) throw error
}

function timeExceeded(): TablesError {
  return new TablesError('ended for its time', { retryable: true, type: 'TIMEOUT_EXCEEDED' })
}

function lostConnection(): TablesError {
  return new TablesError('the connection was lost', { retryable: true })
}
