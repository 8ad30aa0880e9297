/** Fashion. */
import { garmentTiers } from './thing-tiers.ts'
import type { Category } from './types.ts'

export const fashion: Category = {
  name: 'Fashion',
  projectType: 'FASHION',
  weight: 7,
  studios: ['Textiles', 'Outfitters', 'Cloth House', 'Stitch', 'Thread'],
  delivery: 'parcel',
  tiers: garmentTiers,
  words: {
    dye: ['walnut', 'onion skins', 'indigo', 'madder root', 'birch leaves'],
  },
  making: [
    'Made from {cloth}, dyed with {dye}, sewn by {teamSize} people who sign the inner label. It comes in six sizes, and we alter the seventh.',
    'We weave and sew within a day’s travel of each other. The cloth is {cloth}; colour comes from {dye}.',
  ],
  spending: [
    'Mills take orders from three hundred metres up. That is most of the goal; the rest is thread and wages.',
    'The money pays for {cloth}, buttons that do not fall off, and eleven weeks of sewing.',
  ],
  risks: [
    'Plants do not dye twice alike: yours may be a shade lighter or darker than in the pictures.',
    'Sizes are the hard part of selling by post. You may exchange once, at our cost.',
  ],
  genres: [
    {
      name: 'Bags',
      thing: 'backpack',
      priceFactor: 1.4,
      words: { cloth: ['waxed cotton', 'sailcloth that has seen the sea', 'heavy linen', 'old fire hoses'] },
      titles: [
        'The {Adj} Rucksack',
        '{Creature} Backpack',
        'The {Noun} Daypack',
        'Carry the {Noun2}',
        '{Noun2} Pack',
        'One Bag: The {Creature} Edition',
        'The {Noun} Courier',
      ],
      subtitles: ['From {cloth}, with a zip that can be replaced', 'One bag for work, trains and rain'],
      pitches: [
        'A bag ends with its zip. So ours has one that you can change yourself, in ten minutes, with a spoon.',
        'Made from {cloth}: light, quiet, and better looking with every year of rain.',
      ],
      tags: ['bags', 'repairable', 'commuting', 'slow fashion'],
    },
    {
      name: 'Knitwear',
      thing: 'jumper',
      priceFactor: 1.5,
      words: { cloth: ['undyed wool', 'felted lambswool', 'wool from a single flock'] },
      titles: [
        'The {Noun2} Jumper',
        'One Good Jumper: {Noun} Edition',
        'The {Creature} Pullover',
        'The {Adj} Jumper',
        '{Creature} & {Noun2} Knits',
        'Twenty Winters',
        'The {City} Jumper',
      ],
      subtitles: ['Knitted in one piece from {cloth}', 'Coloured with {dye}, warm for twenty winters'],
      pitches: [
        'We know the sheep. The wool is spun forty minutes from where it grazed, knitted in one piece, and coloured with {dye}.',
        'A jumper for twenty winters. When the elbows go, send it home: we mend it for the price of postage.',
      ],
      tags: ['knitwear', 'wool', 'natural dye', 'slow fashion'],
    },
    {
      name: 'Outerwear',
      thing: 'jacket',
      priceFactor: 2.1,
      words: { cloth: ['waxed cotton', 'tightly woven wool', 'cotton that swells in the rain'] },
      titles: [
        'The {Adj} Jacket',
        '{Noun2} Jacket',
        'Weather for {Creatures}',
        'The {Noun} Raincoat',
        '{Adj} Weather',
        'A Coat for the {Noun2}',
        '{Creature}: A Jacket Without Plastic',
      ],
      subtitles: ['A rain jacket without plastic, from {cloth}', 'Six sizes, one jacket, any weather'],
      pitches: [
        'Rain jackets are made from what we find on beaches. This one is made from {cloth}, and keeps you just as dry.',
        'Pockets where the hands are, a hood that turns with the head, and nothing that flaps. It took us {years} years.',
      ],
      tags: ['outerwear', 'rain', 'cycling', 'plastic free'],
    },
  ],
}
