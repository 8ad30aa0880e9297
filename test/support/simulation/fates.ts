/** The fates of statements and requests, drawn from a seed: mostly quick, some long, some lost. */
import { chance, intBetween, pick, pickWeighted, type Random } from '../runner/random.ts'

/** The fate of a statement of the fold. Times are milliseconds of virtual time. */
export type WriteFate =
  /** It runs for this time, and its caller sees it end. */
  | { type: 'seen'; runMs: number }
  /**
   * Its caller loses the connection after a while. The statement begins nevertheless, perhaps long after that, and runs to its end.
   * Or it never begins: `beginsAfterMs` is infinite.
   */
  | { type: 'lost'; lostAfterMs: number; beginsAfterMs: number; runMs: number }
  /** ClickHouse cancels it, because it needs too much time. Some of its rows may be visible by then. */
  | { type: 'refused'; someAfterMs: number | undefined }

/** The fate of an insert of a projector. */
export type InsertFate = 'seen' | 'ran unseen' | 'never'

export interface FateSettings {
  random: Random
  wayMsMax: number
  /** The least time of a statement that writes campaigns. */
  writeMsMin: number
  /** How long a statement on several campaigns may take. It can take longer: the end of an insert cannot be cancelled. */
  foldMsMax: number
  /** Share of statements that have a fault. */
  trouble: () => number
  /** Whether nearly all faults are folds that arrive late. */
  areLate: boolean
}

export interface Fates {
  /** `isSmall`: it writes no campaigns. */
  write(isSmall: boolean): WriteFate
  insert(): InsertFate
  /** One way over the network. */
  wayMs(): number
  smallRunMs(): number
  /** How long a statement of the query service runs; undefined: it fails. */
  queryRunMs(): number | undefined
  /** Whether a request of a consumer is lost on the way. */
  isRequestLost(): boolean
}

const lateMsMax = 30_000

export function createFates(settings: FateSettings): Fates {
  const { random, wayMsMax, writeMsMin, foldMsMax, trouble, areLate } = settings
  const ms = (min: number, max: number) => intBetween(random, min, max)
  const inTrouble = (share = 1) => chance(random, share * trouble())
  const smallRunMs = () => ms(1, 20)
  const longRunMs = () => ms(writeMsMin, pick(random, [foldMsMax, foldMsMax, 4 * foldMsMax, 20 * foldMsMax]))

  function troubled(isSmall: boolean): WriteFate {
    const type = pickWeighted<'long' | 'unseen' | 'late' | 'never' | 'refused'>(random, [
      ['long', 3],
      ['unseen', 3],
      ['late', areLate ? 40 : 2],
      ['never', 1],
      ['refused', 2],
    ])
    const runMs = longRunMs()
    switch (type) {
      case 'long':
        return { type: 'seen', runMs }
      case 'unseen':
        return { type: 'lost', runMs, lostAfterMs: ms(0, runMs), beginsAfterMs: 0 }
      case 'late': {
        const lostAfterMs = ms(0, foldMsMax)
        // Many arrive while the next leader begins.
        const beginsAfterMs = lostAfterMs + ms(0, pick(random, [foldMsMax, foldMsMax, lateMsMax]))
        return { type: 'lost', runMs: pick(random, [runMs, ms(200, 1_500)]), lostAfterMs, beginsAfterMs }
      }
      case 'never':
        return { type: 'lost', runMs, lostAfterMs: ms(0, foldMsMax), beginsAfterMs: Number.POSITIVE_INFINITY }
      case 'refused':
        return {
          type: 'refused',
          someAfterMs: !isSmall && chance(random, 0.5) ? ms(0, foldMsMax) : undefined,
        }
      default:
        return type satisfies never
    }
  }

  return {
    write(isSmall) {
      if (inTrouble(isSmall ? (areLate ? 0.02 : 0.2) : 1)) return troubled(isSmall)
      return { type: 'seen', runMs: isSmall ? smallRunMs() : ms(writeMsMin, 200 + writeMsMin) }
    },
    insert() {
      if (!inTrouble(1 / 8)) return 'seen'
      return chance(random, 0.5) ? 'ran unseen' : 'never'
    },
    wayMs: () => ms(0, wayMsMax),
    smallRunMs,
    queryRunMs() {
      if (inTrouble(1 / 16)) return undefined
      return inTrouble() && chance(random, 0.3) ? ms(50, 3_000) : ms(1, 40)
    },
    isRequestLost: () => inTrouble(1 / 16),
  }
}
