/** All campaigns in outline: little enough to hold all of them, and all that has to be known of the others. */
import type { Genre } from './catalog/types.ts'
import { creatorOf, type DemoCreator } from './creators.ts'
import { pick, randomOf, type Seed } from './random.ts'
import { type Schedule, scheduleOf, standingOf } from './schedule.ts'
import { drawSlots, fillTitle, type Slots, slugOf } from './texts.ts'

/** What the whole demo platform follows from. */
export interface DemoOptions {
  seed: Seed
  /** Where the history ends, in ms since the epoch. */
  now: number
  /** How many campaigns the history has, 400 when left out. */
  campaigns?: number
}

export interface Outline {
  number: number
  schedule: Schedule
  creatorNumber: number
  /** Which of the drawn titles was still free. */
  titleDraw: number
  title: string
  slug: string
}

export const campaignsDefault = 400

/** How many backers the platform knows: they have the numbers 0 to this, without it. */
export function backersMaxOf({ campaigns = campaignsDefault }: DemoOptions): number {
  return 5_000 + 50 * campaigns
}

/** The outlines, in the order in which the campaigns were created. Slugs are unique. */
export function outlinesOf({ seed, now, campaigns = campaignsDefault }: DemoOptions): Outline[] {
  const offset = randomOf(seed, 'standing')()
  const slugs = new Set<string>()
  const outlines: Outline[] = []
  for (let number = 0; number < campaigns; number++) {
    const random = randomOf(seed, 'outline', number)
    const { status, position } = standingOf(number, offset)
    const schedule = scheduleOf(random, status, position, now)
    // Low numbers are drawn more often, so some creators have several campaigns and most have one.
    const creatorNumber = Math.floor(random() ** 1.5 * campaigns * 1.1)
    const titled = freeTitle(seed, number, creatorOf(seed, creatorNumber), slugs)
    slugs.add(titled.slug)
    outlines.push({ number, schedule, creatorNumber, ...titled })
  }
  return outlines.sort((a, b) => a.schedule.createdAt - b.schedule.createdAt || a.number - b.number)
}

/** What the campaign is about: the same for the same arguments. */
export function themeOf(
  seed: Seed,
  number: number,
  creator: DemoCreator,
  titleDraw: number,
): { genre: Genre; slots: Slots; title: string } {
  const genre = pick(randomOf(seed, 'genre', number), creator.category.genres)
  const random = randomOf(seed, 'theme', number, titleDraw)
  const slots = drawSlots(random, creator.category, genre, creator.city)
  return { genre, slots, title: fillTitle(pick(random, genre.titles), slots) }
}

const titleDrawsMax = 8

function freeTitle(
  seed: Seed,
  number: number,
  creator: DemoCreator,
  taken: ReadonlySet<string>,
): { titleDraw: number; title: string; slug: string } {
  for (let titleDraw = 0; ; titleDraw++) {
    const { title } = themeOf(seed, number, creator, titleDraw)
    const slug = slugOf(title)
    if (!taken.has(slug)) return { titleDraw, title, slug }
    if (titleDraw + 1 === titleDrawsMax) return { titleDraw, title, slug: `${slug}-${number}` }
  }
}
