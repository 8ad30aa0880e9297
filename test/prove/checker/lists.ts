/**
 * The watermark does not lie: an answer as of T has every change that was stamped before T. Which changes these are, the other
 * answers tell, also later ones: each row and each removal shows its stamp. So no answer as of T may leave out, or show older, a
 * campaign that any answer of the whole log shows with a stamp before T. The watermark of a process never goes back. All pages of a
 * snapshot agree.
 */
import type { Answer, Violation } from './log.ts'
import { countBefore, mayBeBack, mayBeHidden, parametersOf, shownBy, type World } from './truth.ts'

interface Stamp {
  at: number
  id: string
  /** The title that it was shown with; `undefined` for a removal. */
  title: string | undefined
  answer: Answer
}

/** The pages of one list, from one snapshot. */
interface Whole {
  pages: Answer[]
  since: number
  asOf: number
}

export function checkLists(world: World): Violation[] {
  const stamps = stampsOf(world.answers)
  const times = stamps.map(({ at }) => at)
  const byId = Map.groupBy(stamps, ({ id }) => id)
  const found: Violation[] = []
  const report = (rule: string, about: string, text: string, answers: Answer[]) =>
    found.push({ rule, about, text, answers })

  // A process may read lists and removals in different ways. By both: the answers whose watermark is above all before.
  const steps = new Map<string, Answer[]>()
  for (const answer of world.answers) {
    const { asOf, process, path, sentAt, ageMs } = answer
    if (asOf === undefined) continue
    for (const { id, updated_at } of shownBy(answer)) {
      const missed = byId.get(id)?.findLast(({ at }) => at < asOf)
      if (!missed || Date.parse(updated_at) >= missed.at) continue
      const text = `as of ${iso(asOf)} shows it of ${updated_at}, and not of ${iso(missed.at)}`
      report('watermark', id, text, [missed.answer, answer])
    }
    const name = `${process} ${path.split('?')[0]}`
    const before = steps.get(name) ?? []
    steps.set(name, before)
    const known = before.findLast(({ receivedAt }) => receivedAt < sentAt - ageMs)
    if (known?.asOf && known.asOf > asOf)
      report('watermark', 'X-Data-As-Of', `steps back to ${iso(asOf)}`, [known, answer])
    if (asOf > (before.at(-1)?.asOf ?? 0)) before.push(answer)
  }

  // The lists by their watermarks, so that one pass over the stamps tells what each must have.
  const latest = new Map<string, Stamp>()
  let next = 0
  for (const { pages, since, asOf } of wholesOf(world.answers)) {
    const totals = new Set(pages.map(({ page }) => page?.total))
    if (totals.size > 1) report('snapshot', 'total', `moves within a snapshot: ${[...totals]}`, pages)
    const ids = pages.flatMap(shownBy).map(({ id }) => id)
    const shown = new Set(ids)
    if (shown.size < ids.length) report('snapshot', 'page', 'a list has a campaign twice', pages)
    for (let stamp = stamps[next]; stamp && stamp.at < asOf; stamp = stamps[++next])
      latest.set(stamp.id, stamp)
    const all = since > 0 ? stamps.slice(countBefore(times, since), next) : latest.values()
    for (const stamp of all) {
      const isDue = latest.get(stamp.id) === stamp && !shown.has(stamp.id)
      const text = `as of ${iso(asOf)} leaves it out of ${iso(stamp.at)}`
      if (isDue && isLeftOut(stamp, pages, world))
        report('watermark', stamp.id, text, [stamp.answer, ...pages])
    }
  }
  return found
}

/** Every stamp of every campaign that any answer shows, the earliest first. */
function stampsOf(answers: readonly Answer[]): Stamp[] {
  const known = new Map<string, Stamp>()
  for (const answer of answers) {
    for (const { id, updated_at, title } of shownBy(answer)) {
      const name = `${id} ${updated_at} ${title === undefined}`
      if (!known.has(name)) known.set(name, { at: Date.parse(updated_at), id, title, answer })
    }
  }
  return [...known.values()].toSorted((a, b) => a.at - b.at)
}

/** Whether the list, of campaigns or of removals, had to have what was stamped before its watermark. */
function isLeftOut(stamp: Stamp, pages: readonly Answer[], { campaigns }: World): boolean {
  const isRemovals = pages.some(({ removals }) => removals !== undefined)
  const campaign = campaigns.get(stamp.id)
  const by = Math.max(...pages.map(({ receivedAt }) => receivedAt))
  if (!campaign || isRemovals !== (stamp.title === undefined)) return false
  if (isRemovals) return stamp.at >= (pages[0]?.keptSince ?? 0) && !mayBeBack(campaign, by)
  const shown = 1 + campaign.states.findIndex(({ data }) => data?.title === stamp.title)
  return !mayBeHidden(campaign, shown, by)
}

/** The lists of which the log has all pages from one snapshot, and that are not filtered. By their watermarks. */
export function wholesOf(answers: readonly Answer[]): Whole[] {
  const pages = answers.filter(({ page, snapshot }) => page && snapshot)
  const bySnapshot = Map.groupBy(
    pages,
    // Of one reader: what another got again would hide what is missing here.
    ({ snapshot, path, page, reader }) =>
      `${snapshot} ${page?.limit} ${path.replace(/[?&](limit|offset)=\d+/g, '')} ${reader}`,
  )
  const wholes = [...bySnapshot.values()].flatMap((all): Whole[] => {
    const [first] = all
    const parameters = parametersOf(first?.path ?? '')
    if (!first?.page || parameters.has('status') || parameters.has('category')) return []
    const byOffset = new Map(all.toReversed().map(one => [one.page?.offset, one]))
    const { limit } = first.page
    const total = Math.max(...all.map(({ page }) => page?.total ?? 0))
    const offsets = Array.from({ length: Math.max(1, Math.ceil(total / limit)) }, (_, n) => n * limit)
    const found = offsets.flatMap(offset => byOffset.get(offset) ?? [])
    const since = Date.parse(parameters.get('updated_since') ?? parameters.get('since') ?? '1970-01-01')
    const asOf = Math.min(...found.map(one => one.asOf ?? 0))
    return found.length < offsets.length ? [] : [{ pages: found, since, asOf }]
  })
  return wholes.toSorted((a, b) => a.asOf - b.asOf)
}

function iso(at: number): string {
  return new Date(at).toISOString()
}
