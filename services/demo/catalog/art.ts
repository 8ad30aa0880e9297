/** Art. */
import { artTiers } from './thing-tiers.ts'
import type { Category } from './types.ts'

export const art: Category = {
  name: 'Art',
  projectType: 'ART',
  weight: 9,
  studios: ['Atelier', 'Print Room', 'Works', 'Studio', 'Gallery'],
  delivery: 'parcel',
  tiers: artTiers,
  words: {
    motif: [
      'harbours at night',
      'abandoned swimming pools',
      'birds of the ring road',
      'tools that nobody needs any more',
      'tidal pools',
      'other people’s kitchens',
      'winter fields',
    ],
    technique: ['linocut', 'copper etching', 'cyanotype', 'screen print', 'woodblock'],
    pages: ['48', '72', '108'],
  },
  making: [
    'We work slowly and show everything: sketches, failures, and the days on which nothing happened are in the gallery.',
    'The studies are done, and some of them have been shown in {city}. The rest is planned, measured and waiting. A book of {pages} pages will tell how it went.',
  ],
  spending: [
    'The goal pays for material, a fair fee for two assistants, and six weeks of rent.',
    'With your help we can pay for material and printing; the work itself is our share.',
  ],
  risks: [
    'What is made by hand varies. Should something arrive damaged, we make it again.',
    'The one thing left to chance is the drying time in a wet autumn. We have counted on a wet one.',
  ],
  genres: [
    {
      name: 'Printmaking',
      thing: 'print series',
      titles: [
        '{Helpers} Prints of the {Noun2}',
        'The {Adj} Alphabet',
        '{Noun} & {Noun2}: A Print Series',
        'A Year of {Creatures}',
        'The {Creature} Plates',
        '{Adj} {Noun2} in {Technique}',
      ],
      subtitles: ['A series in {technique} about {motif}', '{Technique}, pulled by hand, one a week'],
      pitches: [
        'A print a week, for most of a year, about {motif}. We would like to bring them together in one edition and one exhibition.',
        '{Technique} is an odd way to draw {motif}: everything is backwards until the very last moment. That moment is why we do it.',
      ],
      tags: ['printmaking', 'limited edition', 'hand made', 'paper'],
    },
    {
      name: 'Photobooks',
      thing: 'photobook',
      titles: [
        'After the {Noun}',
        'The {Noun2} in {Helpers} Pictures',
        'Looking for the {Creature}',
        '{Adj} Rooms',
        'Four in the Morning, {City}',
        'The {Noun} Is Closed',
        '{Noun2}, {Noun2b}: Photographs',
      ],
      subtitles: ['A photobook about {motif}', '{Pages} pages of film photographs, taken over {years} years'],
      pitches: [
        'For {years} years we have photographed {motif}, on film, early in the morning, mostly in the rain. {Pages} pages of it are good.',
        'These photographs of {motif} were never meant to be a book. Then we laid them on the floor, and they were one.',
      ],
      tags: ['photobook', 'film photography', 'documentary', 'landscape'],
    },
    {
      name: 'Public Art',
      thing: 'mural',
      titles: [
        'A {Creature} for the {Noun} Wall',
        'The {Noun} Wall',
        'Painting the {Adj} Bridge',
        'Eighty Metres of {City}',
        '{Creatures} on the {Noun} Wall',
        'A {Noun2} for Our Street',
      ],
      subtitles: [
        'A mural of {motif}, painted together with the street',
        'Eighty metres of grey wall, and what it could be',
      ],
      pitches: [
        'There is a wall of eighty metres that {helpers} thousand people pass every day. We have the permission, the scaffold and a drawing of {motif}. What is missing is paint.',
        'The neighbours voted, and {motif} won by one vote over a giant {creature}. We will hide the {creature} somewhere.',
      ],
      tags: ['mural', 'public art', 'neighbourhood', 'street'],
    },
  ],
}
