/** The answers to the examples about the history by day, computed as plainly as possible from a world. */
import { byBytes } from '../events/model.ts'
import { type Answer, rounded } from './answers.ts'
import { mean, median, round, sum } from './arithmetic.ts'
import { dayMs, type ExampleWorld, type Shown } from './world.ts'

/** What a campaign that is shown at the end of a day gained on it. */
interface Gain {
  raised: number
  pledges: number
  /** It had its amount before the history showed it. */
  isOpening: boolean
}

function gainOf({ history }: ExampleWorld, day: number, now: Shown): Gain {
  const before = history.get(day - 1)?.get(now.id)
  if (before)
    return { raised: now.platform - before.platform, pledges: now.pledges - before.pledges, isOpening: false }
  // Its launch was on this day or the day before: it is new.
  return Math.floor(now.launch / dayMs) >= day - 1
    ? { raised: now.platform, pledges: now.pledges, isOpening: false }
    : { raised: 0, pledges: 0, isOpening: true }
}

function gainsOf(world: ExampleWorld, day: number): { now: Shown; gain: Gain }[] {
  const shown = [...(world.history.get(day)?.values() ?? [])]
  return shown.map(now => ({ now, gain: gainOf(world, day, now) }))
}

const textOf = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10)

export const historyAnswers: Readonly<Record<string, (world: ExampleWorld) => Answer>> = {
  '17-funding-by-day': world => {
    const raised = world.days.map(day => sum(gainsOf(world, day).map(({ gain }) => gain.raised)))
    return world.days
      .map((day, index) => [
        textOf(day),
        sum(gainsOf(world, day).map(({ gain }) => gain.pledges)),
        rounded(raised[index] ?? Number.NaN, 2),
        rounded(mean(raised.slice(Math.max(0, index - 6), index + 1)), 2),
        rounded(sum(gainsOf(world, day).map(({ now }) => now.platform)), 2),
      ])
      .slice(-30)
  },

  '18-campaigns-that-took-off': world =>
    world.shown
      .filter(({ status }) => status === 'LIVE')
      .flatMap(({ id, title }) => {
        const gains: (Gain & { day: number })[] = []
        for (const day of world.days) {
          const now = world.history.get(day)?.get(id)
          if (now) gains.push({ day, ...gainOf(world, day, now) })
        }
        return gains.map((gain, index) => {
          const opened = gains.slice(0, index + 1).findLastIndex(({ isOpening }) => isOpening)
          const before = gains.slice(Math.max(0, index - 7, opened + 1), index)
          return { title, ...gain, usual: mean(before.map(({ pledges }) => pledges)) }
        })
      })
      .filter(({ pledges, usual }) => pledges >= 10 && pledges >= 3 * usual)
      .toSorted((a, b) => b.pledges - a.pledges || b.day - a.day || byBytes(a.title, b.title))
      .slice(0, 20)
      .map(({ title, day, pledges, usual, raised }) => [
        title,
        textOf(day),
        pledges,
        rounded(usual, 1),
        rounded(raised, 2),
      ]),

  '19-median-time-to-goal': world => {
    const first = world.days[0] ?? 0
    const reached = world.shown.flatMap(({ id, category, launch }) => {
      const launched = Math.floor(launch / dayMs)
      const day = world.days.find(day => (world.history.get(day)?.get(id)?.percent ?? 0) >= 100)
      return day === undefined || launched < first ? [] : [{ category, days: day - launched }]
    })
    return [...Map.groupBy(reached, ({ category }) => category)]
      .map(([category, members]) => ({ category, days: members.map(({ days }) => days) }))
      .toSorted((a, b) => median(a.days) - median(b.days) || byBytes(a.category, b.category))
      .map(({ category, days }) => [
        category,
        days.length,
        median(days),
        days.filter(count => count === 0).length,
      ])
  },

  '20-categories-that-grow': world => {
    const today = world.days.at(-1) ?? 0
    const raisedIn = (category: string, from: number, to: number): number =>
      sum(
        world.days
          .filter(day => day >= from && day < to)
          .flatMap(day => gainsOf(world, day))
          .filter(({ now }) => now.category === category)
          .map(({ gain }) => gain.raised),
      )
    const categories = new Set(
      [...world.history.values()].flatMap(shown => [...shown.values()].map(one => one.category)),
    )
    return [...categories]
      .map(category => ({
        category,
        last: raisedIn(category, today - 7, today),
        before: raisedIn(category, today - 14, today - 7),
      }))
      .toSorted((a, b) => b.last - a.last || byBytes(a.category, b.category))
      .map(({ category, last, before }) => [
        category,
        rounded(last, 2),
        rounded(before, 2),
        before > 0 ? rounded(100 * (round(last, 2) / round(before, 2) - 1), 1) : null,
      ])
  },

  '21-half-the-goal-in-a-week': ({ shown, history, days, now }) => {
    const today = Math.floor(now / dayMs)
    const old = shown.filter(({ launch }) => Math.floor(launch / dayMs) + 7 <= today)
    // Launched on the first day of the history or on the day before, it is new to it, as in gainOf.
    const known = old.filter(({ launch }) => Math.floor(launch / dayMs) >= (days[0] ?? 0) - 1)
    const hadHalf = ({ id, launch }: Shown) =>
      (history.get(Math.floor(launch / dayMs) + 6)?.get(id)?.percent ?? 0) >= 50
    const had = known.filter(hadHalf)
    const percent = (100 * had.length) / known.length
    return [[known.length, had.length, rounded(percent, 2), old.length - known.length]]
  },
}
