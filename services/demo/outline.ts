/** Outlines of all campaigns: small enough to keep them all in memory, with everything that other campaigns need to know. */
import { type Category, catalog } from './catalog.ts'
import { chance, opaqueId, pick, pickBy, type Random, randomOf, type Seed } from './random.ts'
import { scheduleOf, standingOf } from './schedule.ts'
import { capitalize, drawSlots, fillTitle, slugOf } from './texts.ts'

/** The parameters of the whole demo platform. */
export interface DemoOptions {
  seed: Seed
  /** The end of the history, in ms since the epoch. */
  now: number
  /** The number of campaigns in the history. Default: 400. */
  campaigns?: number
}

export type Outline = ReturnType<typeof outlinesOf>[number]

export const campaignsDefault = 400

/** The prefix of every URL of the demo platform. */
export const siteUrl = 'https://crowdfunding.example'

/** The number of backers of the platform. Backers are numbered from 0, below this. */
export function backersMaxOf({ campaigns = campaignsDefault }: DemoOptions): number {
  return 5_000 + 50 * campaigns
}

/** The outlines, in the order in which the campaigns were created. Slugs are unique. */
export function outlinesOf({ seed, now, campaigns = campaignsDefault }: DemoOptions) {
  const offset = randomOf(seed, 'standing')()
  const slugs = new Set<string>()
  const outlines = Array.from({ length: campaigns }, (_, number) => {
    const random = randomOf(seed, 'outline', number)
    const { status, position } = standingOf(number, offset)
    const schedule = scheduleOf(random, status, position, now)
    // Low numbers are drawn more often, so some creators have several campaigns and most have one.
    const creator = creatorOf(seed, Math.floor(random() ** 1.5 * campaigns * 1.1))
    const theme = themeOf(seed, number, creator, slugs)
    slugs.add(theme.slug)
    return { number, schedule, ...creator, ...theme }
  })
  return outlines.sort((a, b) => a.schedule.createdAt - b.schedule.createdAt || a.number - b.number)
}

/** An invented studio with a home, a trade and a currency. It depends only on the seed and the number. */
function creatorOf(seed: Seed, number: number) {
  const random = randomOf(seed, 'creator', number)
  const category = pickBy(random, catalog().categories, ({ weight }) => weight)
  const { currency, places } = pickBy(random, catalog().homes, ({ weight }) => weight)
  const location = pick(random, places)
  const name = studioName(random, category)
  const creator_id = opaqueId('crt', seed, number)
  const creator = {
    creator_id,
    name,
    profile_url: `${siteUrl}/creators/${slugOf(name)}-${creator_id.slice(-4)}`,
    avatar_url: chance(random, 0.15) ? null : `${siteUrl}/media/creators/${creator_id}.webp`,
  }
  return { creator, category, location, currency }
}

function studioName(random: Random, { studios }: Category): string {
  const word = (slot: string): string => capitalize(pick(random, catalog().words[slot] ?? []))
  const second = pick(random, studios)
  const shape = random() * 11
  if (shape < 4) return `${word(chance(random, 0.5) ? 'noun' : 'creature')} ${second}`
  if (shape < 8) return `${word('adj')} ${word('creature')} ${second}`
  return `${word('noun')} & ${word('creature')} ${second}`
}

const titleDrawsMax = 8

/** The campaign's subject, under an unused title. */
function themeOf(
  seed: Seed,
  number: number,
  { category, location }: ReturnType<typeof creatorOf>,
  taken: ReadonlySet<string>,
) {
  const genre = pick(randomOf(seed, 'genre', number), category.genres)
  const city = location.split(',')[0] ?? location
  for (let draw = 1; ; draw++) {
    const random = randomOf(seed, 'theme', number, draw - 1)
    const slots = drawSlots(random, category, genre, city)
    const title = fillTitle(pick(random, genre.titles), slots)
    const slug = slugOf(title)
    if (!taken.has(slug)) return { genre, slots, title, slug }
    if (draw === titleDrawsMax) return { genre, slots, title, slug: `${slug}-${number}` }
  }
}
