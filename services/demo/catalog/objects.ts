/** Design and Technology. */
import { productTiers } from './thing-tiers.ts'
import type { Category } from './types.ts'

export const design: Category = {
  name: 'Design',
  projectType: 'DESIGN',
  weight: 10,
  studios: ['Works', 'Goods', 'Design', 'Workshop', 'Objects'],
  delivery: 'parcel',
  tiers: productTiers,
  words: {
    material: [
      'ash and brass',
      'folded steel',
      'recycled aluminium',
      'solid oak offcuts',
      'cork and wool felt',
      'cast iron',
      'birch plywood',
    ],
    annoyance: [
      'wobbles',
      'rattles',
      'gets lost',
      'cannot be repaired',
      'looks like office furniture',
      'outlives its welcome',
    ],
    parts: ['four', 'six', 'seven', 'nine'],
  },
  making: [
    'It is made from {material}, in {parts} parts, held together by screws that any drawer has a tool for. Every part can be ordered again.',
    'We make it in a workshop of {teamSize} people, from {material}. The tools for the first batch are cut; the parts have been tested for a year, not always gently.',
  ],
  spending: [
    'The goal pays for material for the first two hundred pieces and for the last tool that we lack.',
    'We buy {material} in small amounts at a bad price. With this campaign we can buy it once, at a good one.',
  ],
  risks: [
    'Natural material varies in colour and grain. We sort by hand and send what we would keep ourselves.',
    'Our supplier of {material} is small. A second one has sent samples that we would be happy to use.',
    'Finishing takes longer in damp weather. We have planned with the worst month of last year.',
  ],
  genres: [
    {
      name: 'Lighting',
      priceFactor: 1.3,
      thing: 'lamp',
      titles: [
        '{Creature}: A Lamp That Folds',
        'The {Adj} Lamp',
        '{Noun2} Light',
        'The {Noun} Reading Lamp',
        '{Adj} Light',
        'One Lamp: The {Noun} Edition',
        'Lamp No. {Volume}',
      ],
      subtitles: [
        'A lamp made from {material} that can be repaired with one screwdriver',
        'Warm light, no app, {parts} parts',
      ],
      pitches: [
        'A lamp should be there when it gets dark and otherwise not be talked about. Ours is made from {material}, dims to almost nothing, and knows no password.',
        'Sooner or later every lamp {annoyance}. So we drew one that does not.',
      ],
      tags: ['lighting', 'repairable', 'home', 'made to last'],
    },
    {
      name: 'Clocks',
      thing: 'clock',
      priceFactor: 0.9,
      titles: [
        'The {Adj} Clock',
        '{Noun2} Time: A Clock With One Hand',
        'The {Noun} Clock',
        '{Creature} Hour',
        'Clock No. {Volume}',
        '{Adj} Hours',
        'A Quarter Past {Noun2}',
      ],
      subtitles: [
        'A wall clock with one hand, from {material}',
        'Roughly right, for people who are early anyway',
      ],
      pitches: [
        'This clock has one hand. You will know that it is about a quarter past, and find that this is enough.',
        'It does not tick, glow or connect to anything. It hangs on the wall, made from {material}, and is roughly right.',
      ],
      tags: ['clock', 'home', 'repairable', 'made to last'],
    },
    {
      name: 'Furniture',
      thing: 'stool',
      priceFactor: 1.5,
      titles: [
        '{Creature} Stool',
        'The {Noun} Stool',
        'Sit: A Stool in {Parts} Parts',
        'The {Adj} Stool',
        'Stool No. {Volume}',
        '{Noun2} Stool',
        'A Stool Called {Creature}',
      ],
      subtitles: [
        'Furniture from {material} that moves house as flat as a door',
        '{Parts} parts, no glue, one lifetime',
      ],
      pitches: [
        'Most furniture {annoyance} after the second move. This one was designed by people who moved {years} times in ten years.',
        'Made from {material}, put together in four minutes, taken apart in three, and carried under one arm.',
      ],
      tags: ['furniture', 'flat pack', 'wood', 'repairable', 'home'],
    },
    {
      name: 'Kitchen',
      thing: 'coffee stand',
      priceFactor: 0.8,
      titles: [
        '{Noun2} Coffee',
        'The {Adj} Coffee Stand',
        '{Creature} Pour-over',
        'The {Noun} Breakfast',
        '{Adj} Mornings',
        'First Cup: The {Noun} Stand',
        '{Creature} Coffee',
      ],
      subtitles: [
        'A coffee stand for slow mornings, from {material}',
        'One tool that replaces a drawer of others',
      ],
      pitches: [
        'There is a moment in the morning, before anyone wants anything, that deserves better tools. This is ours, from {material}.',
        'We took apart everything in our kitchen that {annoyance}, and kept what was left. It was not much, but it was good.',
      ],
      tags: ['kitchen', 'coffee', 'made to last', 'craft'],
    },
  ],
}

export const technology: Category = {
  name: 'Technology',
  projectType: 'TECHNOLOGY',
  weight: 10,
  studios: ['Labs', 'Instruments', 'Electronics', 'Machines', 'Circuits'],
  delivery: 'parcel',
  tiers: productTiers,
  words: {
    revision: ['four', 'five', 'seven'],
    battery: ['two weeks', 'a month', 'a whole summer', 'three years on two cells'],
    license: [
      'schematics, board files and firmware are open from the first day',
      'everything but our logo is open',
      'you may build, change and sell your own',
    ],
    sound: ['tape loops', 'old radio', 'rain on tin roofs', 'a choir that is not there'],
  },
  making: [
    'Revision {revision} of the board is on our benches, and {helpers} of them are out with testers. A battery lasts {battery}; and {license}.',
    'The electronics are tested and the case is ready for its mould. As for the design files, {license}.',
  ],
  spending: [
    'The goal pays for the mould, certification and the first five hundred boards.',
    'Half of the goal is parts, a quarter certification, and the rest a very boring pile of boxes and test rigs.',
  ],
  risks: [
    'Chips can vanish from the market. We have bought the critical one ahead, and a second one fits the same pads.',
    'Certification may ask for a change to the board. We have been through a pre-check and know the two weak points.',
    'Firmware is never finished. It can be updated over the cable, by you, without an account.',
  ],
  genres: [
    {
      name: 'DIY Electronics',
      thing: 'kit',
      priceFactor: 0.7,
      titles: [
        '{Creature}board: Learn to Solder by Ear',
        'The {Noun} Clock Kit',
        '{Adj} Radio: A Receiver You Can Read',
        'Pocket {Noun}',
        '{Noun2} Radio',
        'The {Creature} Kit',
        'Solder Along: {Adj} {Noun}',
      ],
      subtitles: [
        'A kit of {helpers} parts with a book that explains each of them',
        'Solder it in an evening, understand it in a week',
      ],
      pitches: [
        'A kit for people who like to know how things work: {helpers} parts, a printed book, and not one step that says “just trust us”.',
        'We teach electronics on Saturdays. This is the kit we always wished for: large parts, clear print, and a noise at the end.',
      ],
      tags: ['electronics', 'kit', 'open hardware', 'education'],
    },
    {
      name: 'Sensors',
      thing: 'sensor',
      priceFactor: 0.9,
      titles: [
        '{Noun2} Watch: A Weather Sensor for Balconies',
        'The {Noun} Sensor',
        '{Creature} Listener',
        'Soil & {Noun}',
        'What the {Creature} Hears',
        '{Noun} Diary',
        'The {Adj} Barometer',
      ],
      subtitles: [
        'Measures at home, stores at home, lasts {battery}',
        'A small open sensor for gardens, cellars and beehives',
      ],
      pitches: [
        'It measures, writes down what it measured, and keeps it in your house. No account, no cloud, {battery} on one charge.',
        'Which birds pass at night? When did the cellar get damp? A small sensor listens and keeps a diary, on paper if you like.',
      ],
      tags: ['sensor', 'open hardware', 'privacy', 'garden', 'citizen science'],
    },
    {
      name: 'Sound',
      thing: 'synthesiser',
      priceFactor: 2.4,
      titles: [
        '{Noun} One: A Synth With Seven Knobs',
        'The {Adj} Oscillator',
        '{Creature}box',
        'Echo of the {Noun2}',
        '{Noun} Drone',
        '{Adj} Choir: A Pocket Synth',
        'The {Creature} Machine',
      ],
      subtitles: ['An instrument that sounds like {sound}', 'Seven knobs, no menu, {battery} on a charge'],
      pitches: [
        'Seven knobs, each of which does one thing. It sounds like {sound}, fits into a coat pocket and has no menu at all.',
        'We wanted an instrument that one can play on the second day and still not know after a year. This one does {sound}, and worse.',
      ],
      tags: ['synthesiser', 'music technology', 'open hardware', 'portable'],
    },
    {
      name: 'Cycling',
      thing: 'bicycle light',
      priceFactor: 0.6,
      titles: [
        '{Creature} Light',
        'The {Noun2} Commuter Light',
        'See and Be Seen: The {Adj} Light',
        '{Noun} Beam',
        'Home by {Noun2} Light',
        '{Adj} Rider',
        'Lamp for a {Creature}',
      ],
      subtitles: ['A bicycle light that lasts {battery}', 'Bright where you look, dim where others do'],
      pitches: [
        'Bicycle lights blind others, run out on the way home, or get stolen. Ours has a cut-off like a car’s, lasts {battery}, and stays screwed on.',
        'It has one button and a battery that you can change. We have ridden with it through {years} winters.',
      ],
      tags: ['cycling', 'commuting', 'safety', 'repairable'],
    },
  ],
}
