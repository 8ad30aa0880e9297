/** Games and Food & Drink. */
import { communityTiers } from './event-tiers.ts'
import { gameTiers } from './thing-tiers.ts'
import type { Category } from './types.ts'

export const games: Category = {
  name: 'Games',
  projectType: 'GAME',
  weight: 15,
  studios: ['Games', 'Table', 'Dice & Co.', 'Playworks', 'Game Club'],
  delivery: 'parcel',
  tiers: gameTiers,
  words: {
    role: [
      'beekeepers',
      'canal pilots',
      'rival cartographers',
      'night-market cooks',
      'lighthouse crews',
      'retired thieves',
      'moss gardeners',
      'train dispatchers',
    ],
    aim: [
      'chart the last blank corner of the map',
      'keep one small town lit through the winter',
      'grow the strangest garden in the valley',
      'get everybody home before the storm',
      'bring back what you stole, unseen',
      'win the favour of a very old river',
    ],
    players: ['one to four', 'two to five', 'two', 'three to six'],
    minutes: ['twenty', 'forty', 'sixty', 'ninety'],
  },
  making: [
    'For {players} players, {minutes} minutes, and a table of any size. It has been played in clubs and kitchens more than four hundred times; the rules are down to six pages.',
    'Rules and art are finished. The game has been played by {helpers} groups who never met us, with nothing but the rulebook. We watched, took notes, and changed a lot.',
  ],
  spending: [
    'The goal pays for a first run of a thousand copies without any plastic.',
    'Printing takes most of the goal. The rest goes to the illustrator and to parcels that survive being dropped.',
  ],
  risks: [
    'Boxes travel by sea, and the sea has its own ideas. We have planned eight weeks for what usually takes five.',
    'The factory has made games like this before. We have held its samples, and kept one on a damp balcony for a month.',
  ],
  genres: [
    {
      name: 'Board Games',
      thing: 'game',
      titles: [
        '{Noun} of {Creatures}',
        'The {Adj} {Noun}: A Game of {Role}',
        'Bound for the {Noun2}',
        '{Creature} Market',
        'Keepers of the {Noun2}',
        '{Adj} {Nouns}',
        'The Last {Noun}',
        '{Creature} & {Creature2}: A Duel',
        '{Noun2} and {Noun2b}',
        'Eight {Nouns}',
      ],
      subtitles: [
        'A game for {players} {role}, {minutes} minutes',
        'You are {role}: {aim}',
        'A board game without dice and without revenge',
      ],
      pitches: [
        'You are {role}, and there are never enough of you: {aim}, before the others do, or with them. A game of {minutes} minutes and one difficult decision a turn.',
        'In this game you {aim}. It can be learned in five minutes, and ends when someone says “again”.',
      ],
      tags: ['board game', 'strategy', 'family', 'solo play', 'cooperative'],
    },
    {
      name: 'Card Games',
      priceFactor: 0.45,
      thing: 'card game',
      titles: [
        '{Adj} {Creatures}',
        '{Noun} Rummy',
        'Eleven {Creatures}',
        'A Hand of {Nouns}',
        '{Creature} Takes All',
        'Not My {Creature}',
        '{Noun2} Solitaire',
        'Pocket {Creatures}',
      ],
      subtitles: ['Fifty-four cards, {players} players, {minutes} minutes', 'A small card game about {role}'],
      pitches: [
        'Fifty-four cards that fit into a coat pocket. You collect {creatures}, give away {nouns}, and hope that nobody counts.',
        'The whole game is one question: is that a {creature}, or does the other one just want you to think so?',
      ],
      tags: ['card game', 'travel', 'family', 'bluffing'],
    },
    {
      name: 'Roleplaying Games',
      thing: 'roleplaying game',
      titles: [
        '{Adj} Roads',
        'Under the {Noun2}: A Roleplaying Game',
        'The {Creature} Court',
        'Ghosts of the {Noun}',
        '{Noun} & Oath',
        'Small Gods of the {Noun2}',
        'The {Adj} Company',
        'Nine {Noun2} Nights',
      ],
      subtitles: [
        'Play {role}, one evening at a time',
        'A roleplaying game with no preparation, for {players} players',
      ],
      pitches: [
        'You play {role} who want to {aim}. One evening is one story; no preparation, no thick books, and every character has a debt.',
        'A roleplaying game about ordinary people on strange roads. There are maps, there is tea, and there is a {creature} that knows your name.',
      ],
      tags: ['roleplaying', 'storytelling', 'fantasy', 'zine'],
    },
    {
      name: 'Family Games',
      thing: 'game',
      priceFactor: 0.75,
      titles: [
        'Where Is {Creature}?',
        'Hurry, {Creature}!',
        'The {Noun} Wobbles',
        '{Creature} in the {Noun}',
        'Don’t Wake the {Creature}',
        '{Creature} Soup',
        'Up the {Noun}!',
        'Who Fed the {Creature}?',
      ],
      subtitles: [
        'For children who win and grown-ups who do not let them',
        'A game about {role}, from six years up',
      ],
      pitches: [
        'Somebody has hidden the {noun}, and only the {creature} knows where. A game in which children remember better than grown-ups, as in life.',
        'Build the {noun} as high as you can, then let the {creature} cross it. It falls each time. That is the best part.',
      ],
      tags: ['family', 'children', 'wooden toys', 'memory'],
    },
  ],
}

export const food: Category = {
  name: 'Food & Drink',
  projectType: 'FOOD',
  weight: 7,
  studios: ['Kitchen', 'Bakery', 'Roastery', 'Provisions', 'Table'],
  delivery: 'event',
  tiers: communityTiers,
  words: {
    landlord: ['the parish', 'a patient landlord', 'the housing co-operative', 'the old market hall'],
  },
  making: [
    'We have sold at markets for {years} years and know what we do. What we lack is {oven}, and a room to put it in.',
    'The lease with {landlord} is signed, the health inspector is happy. Now it needs {oven} and a few coats of paint.',
  ],
  spending: [
    'The goal pays for {oven}, the floor beneath it, and three months of rent.',
    'A third goes into {oven}, a third into pipes and wires, and a third into flour, fruit and salt.',
  ],
  risks: [
    'Old buildings hide surprises behind the plaster. We have opened the worst wall already; it was fine.',
    'Harvests differ. If the plums fail, there will be pears.',
  ],
  genres: [
    {
      name: 'Bakeries',
      thing: 'bakery',
      words: {
        dish: ['sourdough', 'rye and caraway', 'seeded flatbread', 'plaited buns'],
        oven: [
          'an oven of four tonnes',
          'a mill with two stones',
          'a kneading trough for two hundred loaves',
        ],
      },
      titles: [
        'The {Adj} Loaf',
        'Bread for the {Noun2}',
        '{Creature} & Crumb',
        'The {Noun} Street Bakery',
        'Crust & {Noun}',
        'Loaf for Loaf, {City}',
        '{Adj} Oven',
      ],
      subtitles: ['A neighbourhood bakery in {city}, built on {dish}', '{Dish}, baked where you can watch'],
      pitches: [
        '{City} has good bread, if you get up at five. We would like to bake it in the afternoon: {dish}, and one thing each day that nobody has asked for.',
        'We began with {dish} for {helpers} neighbours, passed through the kitchen window. The window has become too small.',
      ],
      tags: ['bakery', 'bread', 'neighbourhood', 'local'],
    },
    {
      name: 'Small Batch',
      thing: 'pantry',
      words: {
        dish: ['pickled plums', 'apple vinegar', 'quince paste', 'fermented peppers'],
        oven: [
          'a cellar that stays at twelve degrees',
          'a fruit press for two pairs of hands',
          'copper pans as wide as a table',
        ],
      },
      titles: [
        '{Adj} Jar',
        'The {Noun2} Pantry',
        '{Creature} Hill Preserves',
        'Salt, {Noun}, Time',
        'Windfall: The {Creature} Cellar',
        '{City} in Jars',
        'The {Noun} Cellar',
      ],
      subtitles: ['{Dish} from fruit that nobody picks', 'Small jars, big cellar, no hurry'],
      pitches: [
        'Every autumn tonnes of fruit rot beneath trees that belong to nobody in particular. We pick it, with permission, and make what our grandparents would have made.',
        'Good things take time and {oven}. Time we have.',
      ],
      tags: ['fermentation', 'preserves', 'zero waste', 'seasonal'],
    },
    {
      name: 'Shared Kitchens',
      thing: 'kitchen',
      words: {
        dish: ['hand-folded dumplings', 'buckwheat noodles', 'flatbread and beans', 'thick soup'],
        oven: ['a stove with eight flames', 'an oven of four tonnes', 'two long stone sinks'],
      },
      titles: [
        'The Long Table of {City}',
        'Soup at the {Noun}',
        '{Noun2} Kitchen',
        'Everyone’s Oven: {City}',
        'The {Creature} Kitchen',
        'Thursdays at the {Noun}',
        'A Table for {City}',
      ],
      subtitles: [
        'A kitchen that anyone may use, with {oven}',
        'One table, forty chairs, {dish} on Thursdays',
      ],
      pitches: [
        'A table for forty, a kitchen that anyone may use, and {dish} on Thursdays for whoever turns up. You pay what the week allows.',
        'There are {helpers} people in {city} who cook better than any restaurant and have no place to do it. This is for them.',
      ],
      tags: ['community kitchen', 'cooking', 'neighbourhood', 'social'],
    },
  ],
}
