/** Taking the fold: epochs only grow, and whoever took the highest alone is the one whose statements write. */
import type { Databases, Tables } from '../shared/tables/port.ts'
import { holdMsMax, isHold, isReleased } from './fold-hold.ts'
import { epochHoldersStatement, type Tenure, takeEpochStatement } from './fold-statements.ts'

export interface EpochDependencies {
  tables: Tables
  databases: Databases
  /** Names this run of this process; unique. */
  holder: string
  /** Whether a hold (`fold-hold.ts`) is to be respected: not that of a process that is known to be dead. */
  respectsHold: (holder: string) => boolean
  /** Puts right what a hold that ended by itself has left half done. */
  afterHold: () => Promise<void>
  /** The epoch is taken above this one. */
  epochFloor: () => Promise<bigint>
  /** Waits before another attempt, longer each time. */
  backoff: (attempt: number) => Promise<void>
}

/** Another process folds now. This one has written nothing since, and stops. */
export class SupersededFolder extends Error {
  override name = 'SupersededFolder'
}

/** A rebuild holds the fold while it exchanges the tables: no failure, and over in a moment. */
export class FoldHeld extends Error {
  override name = 'FoldHeld'
}

interface EpochHolder {
  epoch: string
  holder: string
  ageMs: number
}

const attemptsMax = 6

/**
 * Takes the next epoch. `isSettled`: the holder before said that no statement of its runs any more.
 * Two that take an epoch at once get the same number; both then take another, until one is alone.
 * Throws `FoldHeld`, or `SupersededFolder` where it never was alone.
 */
export async function takeEpoch(dependencies: EpochDependencies): Promise<Tenure & { isSettled: boolean }> {
  const { tables, databases, holder, respectsHold, afterHold, epochFloor, backoff } = dependencies
  const readHolders = () => tables.rows<EpochHolder>(epochHoldersStatement(databases))
  const before = await readHolders()
  const holds = before.filter(({ holder }) => isHold(holder))
  if (holds.some(({ holder, ageMs }) => respectsHold(holder) && ageMs < holdMsMax)) {
    throw new FoldHeld('a rebuild exchanges the tables')
  }
  if (holds.length > 0) await afterHold()
  const released = before.find(({ holder }) => isReleased(holder))
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    await tables.run(takeEpochStatement(databases, holder, await epochFloor()))
    const [only, ...others] = await readHolders()
    if (only && others.length === 0 && only.holder === holder) {
      // Somebody may have folded in between.
      const isNext = released !== undefined && BigInt(only.epoch) === BigInt(released.epoch) + 1n
      return { epoch: BigInt(only.epoch), holder, isSettled: isNext }
    }
    await backoff(attempt)
  }
  throw new SupersededFolder(`${holder} did not get an epoch of its own in ${attemptsMax} tries`)
}
