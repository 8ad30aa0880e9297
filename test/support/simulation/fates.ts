/** The fates of statements and requests, drawn from a seed: mostly quick, some long, some lost. */
import { chance, intBetween, pick, pickWeighted, type Random } from '../runner/random.ts'
import { foldMsMax, type Scenario } from './scenario.ts'

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

export type Fates = ReturnType<typeof createFates>

const lateMsMax = 30_000

/** `isStormy`: whether there are faults now. */
export function createFates(
  { wayMsMax, tickMs, climate, trouble }: Scenario,
  random: Random,
  isStormy: () => boolean,
) {
  // The least time of a statement that writes campaigns.
  const writeMsMin = Math.max(5, tickMs)
  // Then nearly all faults are folds that arrive late.
  const areLate = climate === 'late'
  const ms = (min: number, max: number) => intBetween(random, min, max)
  const inTrouble = (share = 1) => chance(random, isStormy() ? share * trouble : 0)
  const smallRunMs = () => ms(1, 20)
  // Longer than a statement may take, too: the end of an insert cannot be cancelled.
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
    /** `isSmall`: it writes no campaigns. */
    write(isSmall: boolean): WriteFate {
      if (inTrouble(isSmall ? (areLate ? 0.02 : 0.2) : 1)) return troubled(isSmall)
      return { type: 'seen', runMs: isSmall ? smallRunMs() : ms(writeMsMin, 200 + writeMsMin) }
    },
    /** The fate of an insert of a projector. */
    insert(): 'seen' | 'ran unseen' | 'never' {
      if (!inTrouble(1 / 8)) return 'seen'
      return chance(random, 0.5) ? 'ran unseen' : 'never'
    },
    /** One way over the network. */
    wayMs: () => ms(0, wayMsMax),
    smallRunMs,
    /** How long a statement of the query service runs; undefined: it fails. */
    queryRunMs(): number | undefined {
      if (inTrouble(1 / 16)) return undefined
      return inTrouble() && chance(random, 0.3) ? ms(50, 3_000) : ms(1, 40)
    },
    /** Whether a request of a consumer is lost on the way. */
    isRequestLost: () => inTrouble(1 / 16),
  }
}
