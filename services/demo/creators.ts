/** The demo's creators: invented studios with a home, a trade and a currency. None of them is a person. */
import type { CampaignState } from '../../contracts/events/event.ts'
import { categories } from './catalog/catalog.ts'
import type { Category } from './catalog/types.ts'
import { sharedWords } from './catalog/words.ts'
import { opaqueId } from './ids.ts'
import type { DemoCurrency } from './money.ts'
import { chance, pick, pickWeighted, type Random, randomOf, type Seed, type Weighted } from './random.ts'
import { slugOf } from './texts.ts'

/** Every address of the demo platform begins with this. */
export const siteUrl = 'https://crowdfunding.example'

export interface DemoCreator {
  creator: CampaignState['creator']
  category: Category
  city: string
  /** City and region or country. */
  location: string
  currency: DemoCurrency
}

/** The creator with this number (0 or more): the same for the same seed, whoever asks. */
export function creatorOf(seed: Seed, number: number): DemoCreator {
  const random = randomOf(seed, 'creator', number)
  const category = pickWeighted(
    random,
    categories.map(value => [value, value.weight] as const),
  )
  const [currency, places] = pickWeighted(random, homes)
  const location = pick(random, places)
  const name = studioName(random, category)
  const creator_id = opaqueId('crt', seed, number)
  return {
    creator: {
      creator_id,
      name,
      profile_url: `${siteUrl}/creators/${slugOf(name)}-${creator_id.slice(-4)}`,
      avatar_url: chance(random, 0.15) ? null : `${siteUrl}/media/creators/${creator_id}.webp`,
    },
    category,
    city: location.split(',')[0] ?? location,
    location,
    currency,
  }
}

const homes: readonly Weighted<readonly [DemoCurrency, readonly string[]]>[] = [
  [
    [
      'USD',
      [
        'Asheville, North Carolina',
        'Duluth, Minnesota',
        'Milwaukee, Wisconsin',
        'Providence, Rhode Island',
        'Richmond, Virginia',
        'Santa Fe, New Mexico',
        'Tacoma, Washington',
        'Tucson, Arizona',
      ],
    ],
    34,
  ],
  [
    [
      'EUR',
      [
        'Bologna, Italy',
        'Galway, Ireland',
        'Ghent, Belgium',
        'Graz, Austria',
        'Leipzig, Germany',
        'Nantes, France',
        'Porto, Portugal',
        'Tampere, Finland',
        'Utrecht, Netherlands',
        'Valencia, Spain',
      ],
    ],
    24,
  ],
  [
    [
      'GBP',
      [
        'Bristol, England',
        'Cardiff, Wales',
        'Glasgow, Scotland',
        'Leeds, England',
        'Norwich, England',
        'Sheffield, England',
      ],
    ],
    16,
  ],
  [
    ['CAD', ['Halifax, Nova Scotia', 'Montréal, Québec', 'Victoria, British Columbia', 'Winnipeg, Manitoba']],
    8,
  ],
  [['JPY', ['Kanazawa, Japan', 'Kyoto, Japan', 'Onomichi, Japan', 'Sapporo, Japan']], 6],
  [['AUD', ['Ballarat, Victoria', 'Fremantle, Western Australia', 'Hobart, Tasmania']], 5],
  [['SEK', ['Göteborg, Sweden', 'Malmö, Sweden', 'Umeå, Sweden']], 4],
  [['KWD', ['Kuwait City, Kuwait', 'Salmiya, Kuwait']], 3],
]

function studioName(random: Random, category: Category): string {
  const word = (slot: 'adj' | 'noun' | 'creature'): string => {
    const [first = '', ...rest] = pick(random, sharedWords[slot] ?? [])
    return first.toUpperCase() + rest.join('')
  }
  const second = pick(random, category.studios)
  const shape = pickWeighted(random, [
    ['one', 4],
    ['two', 4],
    ['pair', 3],
  ] as const)
  switch (shape) {
    case 'one':
      return `${word(chance(random, 0.5) ? 'noun' : 'creature')} ${second}`
    case 'two':
      return `${word('adj')} ${word('creature')} ${second}`
    case 'pair':
      return `${word('noun')} & ${word('creature')} ${second}`
    default:
      return shape satisfies never
  }
}
