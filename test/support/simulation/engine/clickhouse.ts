/**
 * ClickHouse in virtual time, as the simulated processes see it. A statement of the fold begins when it arrives, is stamped then, reads
 * then or later, and makes its rows visible when it ends. From its beginning to its end it stands in system.processes. Fates decide
 * when all that is, and whether the caller learns of it.
 */
import {
  type Statement,
  type TableInsert,
  type Tables,
  TablesError,
} from '../../../../services/tables/port.ts'
import { lostConnection } from '../../clickhouse/faulty-tables.ts'
import type { Fates, WriteFate } from '../fates.ts'
import { aloneMsMax, type HeavyCampaign } from '../heavy-campaign.ts'
import { foldMsMax } from '../scenario.ts'
import type { VirtualTime } from '../virtual-time.ts'
import type { Engine } from './engine.ts'
import type { KindOf, WriteKind } from './statement-kinds.ts'

/** The state of a process that may be paused or dead. `awake` resolves when it continues; for a dead one, never. */
export interface Life {
  awake(): Promise<void>
}

export type ClickHouse = ReturnType<typeof createClickHouse>

interface ClickHouseDependencies {
  engine: Engine
  kindOf: KindOf
  time: VirtualTime
  fates: Fates
  /** A campaign whose fold takes more than the common fold may take. */
  heavy: HeavyCampaign | undefined
  /** Ms since the world's start. */
  elapsedMs: () => number
}

/** A statement of the fold. */
interface Writing {
  statement: Statement
  kind: WriteKind
  /** Of a single campaign, under a longer bound of time. */
  isAlone: boolean
}

export function createClickHouse(dependencies: ClickHouseDependencies) {
  const { engine, kindOf, time, fates, heavy, elapsedMs } = dependencies
  const processes = new Set<Statement>()
  /** Statements that began after their caller had lost them, and folds of campaigns in quarantine. */
  const counts = { late: 0, alone: 0 }
  let busy = 0
  let steppedMs = 0
  const clock = () => time.now() + steppedMs

  /** Continues even if no caller waits for it. */
  async function whileBusy<T>(work: () => Promise<T>): Promise<T> {
    busy++
    try {
      return await work()
    } finally {
      busy--
    }
  }

  /** Runs a statement from its arrival to its end. */
  async function execute(writing: Writing, runMs: number, onlySome = false): Promise<void> {
    const { statement, kind } = writing
    const process = { ...statement }
    processes.add(process)
    try {
      const startedAt = clock()
      // Some statements read well after their stamp. What they show can only be newer because of it.
      const readAfterMs = runMs % 3 === 0 ? Math.floor(runMs / 2) : 0
      if (readAfterMs > 0) await time.sleep(readAfterMs)
      const publish = await time.outside(engine.stage(statement, kind, startedAt))
      await time.sleep(runMs - readAfterMs)
      await time.outside(publish(onlySome))
    } finally {
      processes.delete(process)
    }
  }

  async function suffer(writing: Writing, fate: WriteFate): Promise<void> {
    switch (fate.type) {
      case 'seen':
        return whileBusy(() => execute(writing, fate.runMs))
      case 'lost': {
        const { beginsAfterMs, lostAfterMs, runMs } = fate
        if (Number.isFinite(beginsAfterMs)) {
          if (beginsAfterMs > lostAfterMs) counts.late++
          whileBusy(async () => {
            await time.sleep(beginsAfterMs)
            await execute(writing, runMs)
          }).catch(ignoreTablesError)
        }
        await time.sleep(lostAfterMs)
        throw lostConnection()
      }
      case 'refused': {
        const { someAfterMs } = fate
        if (someAfterMs !== undefined) await whileBusy(() => execute(writing, someAfterMs, true))
        await time.sleep((writing.isAlone ? aloneMsMax : foldMsMax) - (someAfterMs ?? 0))
        throw refused('TIMEOUT_EXCEEDED')
      }
      default:
        return fate satisfies never
    }
  }

  async function run(statement: Statement): Promise<void> {
    const kind = kindOf(statement) as WriteKind
    const isAlone = kind === 'fold' && Boolean(statement.query_params?.campaign)
    const writing = { statement, kind, isAlone }
    const isSmall = !['fold', 'withdraw'].includes(kind)
    const fate = fates.write(isSmall)
    if (isAlone) counts.alone++
    if (kind !== 'fold' || !(await isHeavy(statement))) return suffer(writing, fate)
    return foldHeavy(writing, fate)
  }

  async function isHeavy(statement: Statement): Promise<boolean> {
    if (!heavy || elapsedMs() < heavy.fromMs) return false
    return (await engine.touchedBy(statement)).includes(heavy.id)
  }

  async function foldHeavy(writing: Writing, fate: WriteFate): Promise<void> {
    const aloneMs = heavy?.aloneMs ?? 0
    if (writing.isAlone && aloneMs <= aloneMsMax) {
      return suffer(writing, fate.type === 'seen' ? { ...fate, runMs: aloneMs } : fate)
    }
    if (!writing.isAlone && heavy?.reason === 'MEMORY_LIMIT_EXCEEDED') {
      await time.sleep(fates.smallRunMs())
      throw refused(heavy.reason)
    }
    return suffer(writing, { type: 'refused', someAfterMs: undefined })
  }

  async function insert(rows: TableInsert): Promise<void> {
    const fate = fates.insert()
    await time.sleep(fates.smallRunMs())
    if (fate !== 'never') await time.outside(engine.insert(rows))
    if (fate !== 'seen') throw lostConnection()
  }

  async function read<Row>(statement: Statement, runMs: number): Promise<Row[]> {
    const startedAt = clock()
    const readAfterMs = Math.floor(runMs / 2)
    await time.sleep(readAfterMs)
    const rows =
      kindOf(statement) === 'running'
        ? [{ statements: runningOf(statement) }]
        : await time.outside(engine.read(statement, startedAt))
    await time.sleep(runMs - readAfterMs)
    return rows as Row[]
  }

  function runningOf({ query_params }: Statement): number {
    const { texts } = query_params as { texts: string[] }
    return [...processes].filter(({ query }) => texts.some(text => query.includes(text))).length
  }

  return {
    /** Statements that may still make something visible, also those that have not arrived. */
    busy: () => busy,
    /** What happened in the world. */
    counts: () => counts,
    /** ClickHouse's clock, Unix ms. It steps now and then. */
    clock,
    /** Sets the clock forward or, by a negative time, back. */
    stepClock(byMs: number): void {
      steppedMs += byMs
    },

    /** The tables as a projector with this life sees them. */
    connect(life: Life): Tables {
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
        rows: <Row>(statement: Statement) => call(() => read<Row>(statement, fates.smallRunMs())),
        run: statement => call(() => run(statement)),
        insert: rows => call(() => insert(rows)),
        close: async () => {},
      }
    },

    /** The tables as the query service sees them. */
    connectReader: (): Pick<Tables, 'rows'> => ({
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

/** Its caller has lost the connection. */
function ignoreTablesError(error: unknown): void {
  if (!(error instanceof TablesError)) throw error
}

function refused(type: HeavyCampaign['reason']): TablesError {
  return new TablesError('it needs too much', { retryable: true, type })
}
