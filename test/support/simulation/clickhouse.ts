/**
 * ClickHouse in virtual time: what the simulation's processes see of an engine. A statement is stamped when it starts,
 * reads then or later, and shows what it wrote when it ends; fates say when that is, and whether its caller learns of it.
 */
import {
  type Statement,
  type TableInsert,
  type Tables,
  TablesError,
} from '../../../services/shared/tables/port.ts'
import type { Engine } from './engine.ts'
import type { Fates, WriteFate } from './fates.ts'
import type { KindOf } from './statement-kinds.ts'
import type { VirtualTime } from './virtual-time.ts'

/** What happens to a process that is paused or dead: `awake` resolves when it goes on, which a dead one never does. */
export interface Life {
  awake(): Promise<void>
}

export interface ClickHouse {
  /** The tables as a projector of this life has them. */
  connect(life: Life): Tables
  /** The tables as the query service has them. */
  connectReader(): Pick<Tables, 'rows'>
  /** Statements that may still make something visible. */
  running(): number
  /** Moments at which campaigns became visible later than the horizon allows a poller to expect. */
  lateLandings(): number
}

export interface ClickHouseDependencies {
  engine: Engine
  kindOf: KindOf
  time: VirtualTime
  fates: Fates
  horizonMs: number
}

export function createClickHouse(dependencies: ClickHouseDependencies): ClickHouse {
  const { engine, kindOf, time, fates, horizonMs } = dependencies
  let running = 0
  let lateLandings = 0

  /** Goes on whether or not anybody waits for it. */
  async function whileRunning<T>(work: () => Promise<T>): Promise<T> {
    running++
    try {
      return await work()
    } finally {
      running--
    }
  }

  async function writeCampaigns(statement: Statement, kind: 'fold' | 'restamp', runMs: number, some = false) {
    const startedAt = time.now()
    // Some statements read well after their stamp; what they show can only be newer for it.
    const readAfterMs = runMs % 3 === 0 ? Math.floor(runMs / 2) : 0
    if (readAfterMs > 0) await time.sleep(readAfterMs)
    const staged = await time.outside(engine.stage(statement, kind, startedAt))
    await time.sleep(runMs - readAfterMs)
    await time.outside(staged.publish({ onlySome: some }))
    if (time.now() - startedAt > horizonMs) lateLandings++
  }

  async function suffer(statement: Statement, kind: 'fold' | 'restamp', fate: WriteFate): Promise<void> {
    switch (fate.type) {
      case 'seen':
        return whileRunning(() => writeCampaigns(statement, kind, fate.runMs))
      case 'unseen':
        whileRunning(() => writeCampaigns(statement, kind, fate.runMs))
        await time.sleep(fate.lostAfterMs)
        throw lostConnection()
      case 'never':
        await time.sleep(fate.lostAfterMs)
        throw lostConnection()
      case 'ended': {
        const { someAfterMs } = fate
        if (someAfterMs !== undefined) {
          whileRunning(() => writeCampaigns(statement, kind, someAfterMs, true))
        }
        await time.sleep(horizonMs / 2)
        throw new TablesError('ended for its time', { retryable: true, type: 'TIMEOUT_EXCEEDED' })
      }
      default:
        return fate satisfies never
    }
  }

  async function writeSmall(work: () => Promise<void>): Promise<void> {
    const fate = fates.smallWrite()
    await time.sleep(fates.smallRunMs())
    if (fate !== 'never') await time.outside(work())
    if (fate !== 'seen') throw lostConnection()
  }

  function run(statement: Statement): Promise<void> {
    const kind = kindOf(statement)
    switch (kind) {
      case 'fold':
      case 'restamp':
        return suffer(statement, kind, fates.write())
      case 'record':
      case 'take epoch':
        return writeSmall(() => engine.run(statement, kind))
      default:
        throw new Error(`${kind} is no statement that writes`)
    }
  }

  async function read<Row>(statement: Statement, runMs: number): Promise<Row[]> {
    const startedAt = time.now()
    const readAfterMs = Math.floor(runMs / 2)
    await time.sleep(readAfterMs)
    const rows = (await time.outside(engine.read(statement, startedAt))) as Row[]
    await time.sleep(runMs - readAfterMs)
    return rows
  }

  return {
    running: () => running,
    lateLandings: () => lateLandings,

    connect(life) {
      /** There and back; a process that stopped meanwhile goes on from here when it wakes. */
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
        rows: <Row>(statement: Statement) => call(() => read<Row>(statement, fates.smallRunMs())),
        run: statement => call(() => run(statement)),
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

function lostConnection(): TablesError {
  return new TablesError('the connection was lost', { retryable: true })
}
