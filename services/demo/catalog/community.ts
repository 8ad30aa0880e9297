/** Community. */
import { communityTiers } from './event-tiers.ts'
import type { Category } from './types.ts'

export const community: Category = {
  name: 'Community',
  projectType: 'COMMUNITY',
  weight: 7,
  studios: ['Commons', 'Neighbours', 'Collective', 'Society', 'Club'],
  delivery: 'event',
  tiers: communityTiers,
  words: {
    plot: ['the closed ticket office', 'an empty shop on the square', 'the old fire station'],
    offer: [
      'tools to borrow',
      'a warm room on cold days',
      'lessons on Saturdays',
      'a piano that anyone may play',
      'a table for repairs',
    ],
    seasons: ['two', 'three', 'four'],
  },
  making: [
    'For ten years we may use {plot}. {Helpers} volunteers have cleared it; an architect from the street has drawn the plans for nothing.',
    'We have run this from a {room} for {seasons} seasons. Now there is {plot}, and a contract to go with it.',
  ],
  spending: [
    'The goal pays for material and insurance. The work we do ourselves, on weekends, with soup.',
    'Half of the goal goes into {plot}, the rest into water, light and {offer}.',
  ],
  risks: [
    'Volunteers have lives. We have a list of people who can stand in, and a carpenter who can be paid if need be.',
    'The permit is granted for the first stage. The second one needs a new vote, in spring.',
  ],
  genres: [
    {
      name: 'Gardens',
      thing: 'garden',
      words: {
        plot: [
          'the yard behind the old brewery',
          'a car park that nobody parks in',
          'the roof of the market hall',
          'a strip of land along the railway',
        ],
      },
      titles: [
        'The {Adj} Garden of {City}',
        'Plant the {Noun2}',
        '{Creature} Garden',
        'Sixty Beds for {City}',
        'The {Noun} Allotment',
        'Roots Under the {Noun}',
        '{City} Grows',
      ],
      subtitles: ['Vegetables, bees and {offer} on {plot}', 'A garden for everyone, on {plot}'],
      pitches: [
        'We want to turn {plot} into a garden: sixty beds, two beehives, a long table, and {offer}.',
        'Nobody in our street has a garden, and everybody has an opinion on tomatoes. {City} has given us {plot}. Let us begin.',
      ],
      tags: ['garden', 'neighbourhood', 'biodiversity', 'volunteers'],
    },
    {
      name: 'Repair Cafés',
      thing: 'repair café',
      titles: [
        'Mend {City}',
        'The {Noun} Repair Café',
        'Fix It at the {Noun}',
        'The {Adj} Screwdriver',
        'Second Life, {City}',
        '{Creature} Repairs',
      ],
      subtitles: ['{Helpers} volunteers, three benches, {offer}', 'Bring it broken, take it home mended'],
      pitches: [
        'Last year {helpers} volunteers mended more than nine hundred things: toasters, trousers, one accordion. We need a place of our own, with {offer}.',
        'Bring what is broken. We do not repair it for you, we repair it with you, and there is cake.',
      ],
      tags: ['repair', 'circular', 'volunteers', 'skills'],
    },
    {
      name: 'Libraries',
      thing: 'library',
      titles: [
        'A Library of Things for {City}',
        'The {Adj} Reading Room',
        'The {Creature} Library',
        'Borrow the {Noun}',
        'Shelves for {City}',
        'The {Noun} Street Library',
      ],
      subtitles: ['Books, drills, tents and {offer}', 'A reading room in {plot}'],
      pitches: [
        'A drill is used for eleven minutes in its life. We lend drills, tents, sewing machines and projectors, and books as well. What is missing is room for them.',
        'When the branch library closed, the neighbours carried out the shelves. They have stood in {helpers} hallways since. We would like to put them up again.',
      ],
      tags: ['library', 'sharing', 'education', 'neighbourhood'],
    },
  ],
}
