/** Reward tiers, cheapest first, of campaigns whose backers get a thing. */
import { thanks } from './event-tiers.ts'
import type { Tier } from './types.ts'

export const printTiers: readonly Tier[] = [
  thanks,
  {
    title: 'Digital edition',
    description:
      'The whole {thing} as PDF and EPUB, without copy protection, on the day it goes to the printer.',
    price: 11,
    demand: 22,
    supply: 'open',
  },
  {
    title: 'Early copy',
    description: 'One printed copy at a friendlier price for those who come first. Digital edition included.',
    price: 20,
    demand: 30,
    supply: 'early',
  },
  {
    title: 'Printed copy',
    description: 'One printed copy and the digital edition.',
    price: 25,
    demand: 38,
    supply: 'open',
  },
  {
    title: 'Signed and numbered',
    description: 'A printed copy, signed and numbered, with a small drawing or line on the first page.',
    price: 45,
    demand: 14,
    supply: 'early',
  },
  {
    title: 'Two to share',
    description: 'Two printed copies in one parcel: keep one, leave the other on a train.',
    price: 46,
    demand: 8,
    supply: 'open',
  },
  {
    title: 'Shop and library bundle',
    description: 'Ten copies for shops, schools and reading rooms, with a poster for the window.',
    price: 190,
    demand: 2,
    supply: 'open',
  },
  {
    title: 'An original',
    description: 'One original page or proof from the making of the {thing}, framed, with a letter about it.',
    price: 320,
    demand: 1,
    supply: 'scarce',
  },
]

export const gameTiers: readonly Tier[] = [
  thanks,
  {
    title: 'Play it tonight',
    description: 'All the files to print, cut and play, and every later revision of them.',
    price: 9,
    demand: 14,
    supply: 'open',
  },
  {
    title: 'Early table',
    description: 'The full game at the price of the first days, with everything that gets unlocked.',
    price: 39,
    demand: 30,
    supply: 'early',
  },
  {
    title: 'The full game',
    description: 'One copy of the finished {thing} with everything that gets unlocked on the way.',
    price: 48,
    demand: 42,
    supply: 'open',
  },
  {
    title: 'Deluxe edition',
    description:
      'Better materials, a cloth bag, a sturdier box, and a short book on how the game came to be.',
    price: 82,
    demand: 24,
    supply: 'open',
  },
  {
    title: 'Club box',
    description: 'Six copies for a club, a café or a school, sent together.',
    price: 255,
    demand: 2,
    supply: 'open',
  },
  {
    title: 'Name a card',
    description:
      'Write one line of the game with us, and find it on a card in every copy. Deluxe edition included.',
    price: 240,
    demand: 2,
    supply: 'scarce',
  },
]

export const productTiers: readonly Tier[] = [
  thanks,
  {
    title: 'Early maker’s price',
    description: 'One {thing} from the first batch, well below the later price.',
    price: 69,
    demand: 38,
    supply: 'early',
  },
  {
    title: 'One {thing}',
    description: 'One {thing} from the first batch, in the colour of your choice.',
    price: 84,
    demand: 36,
    supply: 'open',
  },
  {
    title: 'A pair',
    description: 'Two in one parcel, for two rooms, two homes or two friends.',
    price: 155,
    demand: 12,
    supply: 'open',
  },
  {
    title: 'With spare parts',
    description:
      'One {thing} with a full set of the parts that wear, and the drawings to make them yourself.',
    price: 118,
    demand: 12,
    supply: 'open',
  },
  {
    title: 'Workshop visit',
    description: 'Spend an afternoon with us, assemble your own, and have lunch at the long table.',
    price: 310,
    demand: 1,
    supply: 'scarce',
  },
  {
    title: 'Ten for the team',
    description: 'Ten pieces for a studio, an office or a school, with one invoice.',
    price: 690,
    demand: 1,
    supply: 'open',
  },
]

export const garmentTiers: readonly Tier[] = productTiers.map(tier =>
  tier.title === 'With spare parts'
    ? {
        ...tier,
        title: 'With a mending kit',
        description: 'One {thing} with yarn, thread and patches for the years to come.',
      }
    : tier,
)

export const artTiers: readonly Tier[] = [
  thanks,
  {
    title: 'Six postcards',
    description: 'Six postcards of the {thing}, two of which nobody else gets to see.',
    price: 12,
    demand: 26,
    supply: 'open',
  },
  {
    title: 'Early book',
    description: 'The book that goes with the {thing}, at the price of the first days.',
    price: 29,
    demand: 24,
    supply: 'early',
  },
  {
    title: 'The book',
    description: 'The book that goes with the {thing}: pictures, sketches and a text that is short.',
    price: 36,
    demand: 30,
    supply: 'open',
  },
  {
    title: 'A signed print',
    description: 'One print of a small edition, signed, rolled, and posted in a strong tube.',
    price: 75,
    demand: 14,
    supply: 'early',
  },
  {
    title: 'Come and help',
    description: 'A day in the studio with gloves and an apron, and a print of your own to take home.',
    price: 120,
    demand: 3,
    supply: 'early',
  },
  {
    title: 'An original',
    description: 'One of the studies for the {thing}, framed, with a letter about how it was made.',
    price: 420,
    demand: 1,
    supply: 'scarce',
  },
]
