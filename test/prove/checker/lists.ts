/**
 * The watermark does not lie: an answer as of T has every change that was stamped before T. Which changes these are, the other
 * answers tell, also later ones: each row and each removal shows its stamp. So no answer as of T may leave out, or show older, a
 * campaign that any answer of the whole log shows with a stamp before T. The watermark of a process never goes back. All pages of a
 * snapshot agree.
 */
import type { Answer, Violation } from './log.ts'
import { mayBeBack, mayBeHidden, type World } from './truth.ts'

interface Stamp {
  at: number
  id: string
  /** The title that it was shown with; `undefined` for a removal. */
  title: string | undefined
  answer: Answer
}

/** By process and resource: the answer with the highest watermark, and answers that had not ended yet. */
type Watermarks = Map<string, { highest: Answer; waiting: Answer[] }>

/** The pages of one list, from one snapshot. */
interface Whole {
  pages: Answer[]
  since: number
  asOf: number
}

export function checkLists(world: World): Violation[] {
  const stamps = stampsOf(world)
  const byId = Map.groupBy(stamps, ({ id }) => id)
  const found: Violation[] = []
  const report = (rule: string, about: string, text: string, answers: Answer[]) =>
    found.push({ rule, about, text, answers })

  const watermarks: Watermarks = new Map()
  for (const answer of world.answers) {
    if (answer.asOf === undefined) continue
    for (const { id, updated_at } of [...world.rowsOf(answer), ...(answer.removals ?? [])]) {
      const stamp = Date.parse(updated_at)
      const missed = latestBefore(byId.get(id) ?? [], answer.asOf)
      if (missed && stamp < missed.at)
        report(
          'watermark',
          id,
          `as of ${iso(answer.asOf)} shows it of ${updated_at}, and not of ${iso(missed.at)}`,
          [missed.answer, answer],
        )
    }
    const higher = steppedBack(watermarks, answer)
    if (higher) report('watermark', 'X-Data-As-Of', `steps back to ${iso(answer.asOf)}`, [higher, answer])
  }

  // The lists by their watermarks, so that one pass over the stamps tells what each must have.
  const latest = new Map<string, Stamp>()
  let next = 0
  for (const { pages, since, asOf } of wholesOf(world.answers)) {
    const totals = new Set(pages.map(({ page }) => page?.total))
    if (totals.size > 1) report('snapshot', 'total', `moves within a snapshot: ${[...totals]}`, pages)
    const ids = pages.flatMap(one => [...world.rowsOf(one), ...(one.removals ?? [])]).map(({ id }) => id)
    const shown = new Set(ids)
    if (shown.size < ids.length) report('snapshot', 'page', 'a list has a campaign twice', pages)
    for (let stamp = stamps[next]; stamp && stamp.at < asOf; stamp = stamps[++next])
      latest.set(stamp.id, stamp)
    const all = since > 0 ? stamps.slice(indexFrom(stamps, since), next) : latest.values()
    for (const stamp of all) {
      const isDue = latest.get(stamp.id) === stamp && !shown.has(stamp.id)
      if (isDue && isLeftOut(stamp, pages, world))
        report('watermark', stamp.id, `as of ${iso(asOf)} leaves it out of ${iso(stamp.at)}`, [
          stamp.answer,
          ...pages,
        ])
    }
  }
  return found
}

/** Every stamp of every campaign that any answer shows, the earliest first. */
function stampsOf(world: World): Stamp[] {
  const known = new Map<string, Stamp>()
  for (const answer of world.answers) {
    const shown: { id: string; updated_at: string; title?: string }[] = [
      ...world.rowsOf(answer),
      ...(answer.removals ?? []),
    ]
    for (const { id, updated_at, title } of shown) {
      const name = `${id} ${updated_at} ${title === undefined}`
      if (!known.has(name)) known.set(name, { at: Date.parse(updated_at), id, title, answer })
    }
  }
  return [...known.values()].toSorted((a, b) => a.at - b.at)
}

function latestBefore(stamps: readonly Stamp[], asOf: number): Stamp | undefined {
  return stamps.findLast(({ at }) => at < asOf)
}

/** The place of the first stamp that is not before this moment. */
function indexFrom(stamps: readonly Stamp[], moment: number): number {
  let [low, high] = [0, stamps.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((stamps[middle]?.at ?? 0) < moment) low = middle + 1
    else high = middle
  }
  return low
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

/** A watermark above that of the answer, which the same process had given before this one was read. */
function steppedBack(watermarks: Watermarks, answer: Answer): Answer | undefined {
  const readSince = answer.sentAt - answer.ageMs
  // A process may read lists and removals in different ways.
  const name = `${answer.process} ${answer.path.split('?')[0]}`
  const known = watermarks.get(name) ?? { highest: answer, waiting: [] }
  watermarks.set(name, known)
  // Answers come in the order in which they ended.
  while (known.waiting[0] && known.waiting[0].receivedAt < readSince) {
    const ended = known.waiting.shift() as Answer
    if ((ended.asOf ?? 0) > (known.highest.asOf ?? 0)) known.highest = ended
  }
  known.waiting.push(answer)
  const { highest } = known
  const isBack = highest.receivedAt < readSince && (highest.asOf ?? 0) > (answer.asOf ?? 0)
  return isBack ? highest : undefined
}

/** The lists of which the log has all pages from one snapshot, and that are not filtered. By their watermarks. */
function wholesOf(answers: readonly Answer[]): Whole[] {
  const pages = answers.filter(({ page, snapshot }) => page && snapshot)
  const bySnapshot = Map.groupBy(
    pages,
    // Of one reader: what another got again would hide what is missing here.
    ({ snapshot, path, page, reader }) => `${snapshot} ${page?.limit} ${queryOf(path)} ${reader}`,
  )
  const wholes = [...bySnapshot.values()].flatMap((all): Whole[] => {
    const [first] = all
    const parameters = new URLSearchParams(queryOf(first?.path ?? '').split('?')[1])
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

/** What a list asks for, without the page. */
export function queryOf(path: string): string {
  const [resource, query] = path.split('?')
  const parameters = new URLSearchParams(query)
  for (const name of ['limit', 'offset']) parameters.delete(name)
  return `${resource}?${parameters}`
}

function iso(at: number): string {
  return new Date(at).toISOString()
}
