/** Comics and Publishing. */
import { printTiers } from './thing-tiers.ts'
import type { Category } from './types.ts'

export const comics: Category = {
  name: 'Comics',
  projectType: 'COMIC',
  weight: 13,
  studios: ['Comics', 'Press', 'Ink', 'Panels', 'Drawing Room'],
  delivery: 'parcel',
  tiers: printTiers,
  words: {
    hero: [
      'a retired ferry pilot',
      'the last clerk of a drowned post office',
      'a girl who repairs weather',
      'a baker who cannot sleep',
      'the more jealous of two beekeepers',
      'a failed opera singer',
      'the youngest keeper of an old lighthouse',
      'a clumsy locksmith with a mule',
      'a travelling piano tuner',
    ],
    plot: [
      'finds a town that is on no map but her own',
      'has one night to return a stolen bell',
      'inherits a hotel whose guests never leave',
      'follows a trail of letters that have not been written yet',
      'must choose which of two rivers to save',
      'goes looking for the colour that vanished from the valley',
      'opens a door in the tide wall and cannot close it again',
    ],
    ink: [
      'ink and watercolour',
      'two-colour risograph',
      'charcoal and a little gold',
      'clean line and flat colour',
    ],
    pages: ['64', '96', '128', '160', '212'],
  },
  making: [
    'Every page is drawn by hand in {ink}, then scanned and lettered. {pages} pages are planned; two thirds of them are finished, and you can read the opening chapter in the gallery.',
    'We print {pages} pages on uncoated paper with a sewn binding, so that the spreads open flat. The printer is a train ride away, and we will stand beside the machine.',
  ],
  spending: [
    'The goal pays for printing, proofs and parcels. The drawing time we have already spent, gladly.',
    'Two thirds of the goal go to the printer, the rest into boxes, stamps and a fair fee for the letterer.',
  ],
  risks: [
    'The drawings that are missing are thumbnailed and timed. What could hold us up is the binding: sewn books wait for a free slot at the bindery.',
    'A colour may come out differently from the screen. We pay for a printed proof before the run, and for a second one if we must.',
  ],
  genres: [
    {
      name: 'Graphic Novels',
      thing: 'graphic novel',
      titles: [
        'The {Adj} {Noun}',
        'Below the {Noun}',
        '{Creature} & {Creature2}',
        'The {Noun} at the End of the {Noun2}',
        'Nobody’s {Noun}',
        '{Noun} Keeper, {Noun2} Keeper',
        'The {Creature} Who Came Back',
        '{Adj} Harbour Blues',
      ],
      subtitles: [
        'A graphic novel in {pages} pages of {ink}',
        'In which {hero} {plot}',
        'A quiet adventure, drawn in {ink}',
      ],
      pitches: [
        '{Hero} {plot}. That is how the story starts, and nothing in it goes the way anybody planned.',
        'This is a story for people who read the last page first and then cry anyway: {hero} {plot}.',
      ],
      tags: ['graphic novel', 'hand drawn', 'mystery', 'debut', 'fantasy'],
    },
    {
      name: 'Webcomics',
      thing: 'collection',
      titles: [
        '{Creature} Weather: The Collected Strips',
        '{Adj} Mondays, Volume {Volume}',
        'The {Creature} Next Door, Volume {Volume}',
        'Small Hours at the {Adj} {Noun}',
        'Meanwhile, {Creature}',
        'Tea With {Creatures}, Volume {Volume}',
        '{Noun} Street, Volume {Volume}',
      ],
      subtitles: [
        'Three years of weekly strips, on paper at last',
        'The first {pages} strips, redrawn and with notes',
      ],
      pitches: [
        'Every Thursday for {years} years a new strip has gone online: {hero} {plot}, four panels at a time. Now there is enough for a real book.',
        'Readers kept asking for something that can fall into the bath. Here are {pages} strips, cleaned up, reordered and on paper.',
      ],
      tags: ['webcomic', 'humour', 'slice of life', 'collected edition'],
    },
    {
      name: 'Anthologies',
      thing: 'anthology',
      titles: [
        '{Noun}light: Stories from the {Noun2}',
        'Tales of the {Adj} {Noun}',
        'Nine Ways to Cross the {Noun2}',
        'Nobody Saw the {Creature}',
        'Nine {Nouns}',
        'After the {Noun2}: Nine Short Comics',
      ],
      subtitles: [
        'Nine short comics by nine artists about one {noun}',
        'An anthology of new comics for long evenings',
      ],
      pitches: [
        'We gave nine artists the same first panel, {noun} by the {noun2}, and ten pages each. No two of them went the same way.',
        'Nine artists, nine short comics, one rule: somewhere in every story there has to be a {creature}.',
      ],
      tags: ['anthology', 'short stories', 'new voices', 'artists'],
    },
  ],
}

export const publishing: Category = {
  name: 'Publishing',
  projectType: 'BOOK',
  weight: 12,
  studios: ['Books', 'Editions', 'Paper House', 'Publishing', 'Pages'],
  delivery: 'parcel',
  tiers: printTiers,
  words: {
    subject: [
      'forgotten railway halts',
      'the people who mend boats',
      'wild apples',
      'small-town cinemas',
      'the moths of one single garden',
      'night trains',
      'public staircases',
      'the last hand-painted shop signs',
      'walking home the long way',
    ],
    paper: ['a linen spine', 'thread-sewn signatures', 'an open spine', 'a cloth cover'],
    pages: ['96', '144', '192', '240', '320'],
    season: ['three winters', 'one long summer', 'a year and a day', 'two harvests'],
  },
  making: [
    'The manuscript is finished and has been through two rounds of editing. The book will have {pages} pages, with {paper}, and be printed by people whose names we know.',
    'We set the text ourselves, in a typeface that is easy on tired eyes, and print {pages} pages with {paper}.',
  ],
  spending: [
    'The goal covers editing, a run of six hundred copies, and posting them.',
    'The money goes to the printer, the proofreader and the illustrator, in this order.',
  ],
  risks: [
    'Paper has become hard to get at short notice. We have an offer that holds until a month after the end of the campaign.',
    'A second proof could cost us two weeks. We have planned for one, and would rather be late than sorry.',
  ],
  genres: [
    {
      name: 'Fiction',
      thing: 'novel',
      titles: [
        'The {Adj} {Noun} Hotel',
        'Letters to the {Noun2}',
        'A Year at the {Noun}',
        'What the {Creature} Knew',
        'The {Noun2} Between Us',
        'All the {Adj} {Nouns}',
        'Before the {Noun} Opened',
      ],
      subtitles: [
        'A novel about leaving late and arriving early',
        'A first novel, set over {season}',
        'A novel in {helpers} letters',
      ],
      pitches: [
        'Over {season}, in a town where the {noun} has stood still for as long as anyone can remember, three neighbours stop telling each other the truth. It goes surprisingly well.',
        'A novel about family, {subject} and one badly timed letter.',
      ],
      tags: ['novel', 'literary fiction', 'debut', 'independent press'],
    },
    {
      name: 'Non-fiction',
      thing: 'book',
      titles: [
        'A Field Guide to {Subject}',
        'In Praise of {Subject}',
        'The Little Book of {Subject}',
        '{Subject}: A Portrait',
        'Notes on {Subject}',
        'Everything We Know About {Subject}',
        'Looking for {Subject}',
      ],
      subtitles: [
        '{Season} of notes, maps and conversations',
        'A book for the curious, with {pages} pages and a fold-out map',
      ],
      pitches: [
        'For {season} we have collected everything we could find about {subject}: maps, recipes, quarrels, a few songs. It has grown into a book of {pages} pages.',
        'Nobody has written a good book about {subject}. We looked for it, missed it, and in the end wrote it.',
      ],
      tags: ['non-fiction', 'local history', 'illustrated', 'field guide', 'nature'],
    },
    {
      name: 'Children’s Books',
      thing: 'picture book',
      words: { pages: ['32', '40', '48'] },
      titles: [
        '{Creature} Cannot Sleep',
        'The {Creature} Who Moved the {Noun}',
        'Goodnight, {Adj} {Noun}',
        'How {Creature} Found the {Noun2}',
        'Who Took the {Noun}?',
        '{Creature} and {Creature2} Share a {Noun}',
        'Too Many {Creatures}',
      ],
      subtitles: [
        'A picture book for reading aloud, from four years up',
        'A bedtime story with {helpers} hidden {creature2} tracks',
      ],
      pitches: [
        'The {creature} has lost a {noun}, and nobody in the forest wants to have seen it. A picture book about asking twice, made for being read aloud again and again.',
        'This book has been tested on {helpers} children. Two fell asleep; the others wanted it again. We count both as success.',
      ],
      tags: ['picture book', 'children', 'read aloud', 'illustration'],
    },
    {
      name: 'Journals',
      thing: 'magazine',
      titles: [
        '{Noun} Quarterly, Issue {Volume}',
        'The {Adj} Review, Issue {Volume}',
        '{Creature}: A Journal of Small Things',
        'The {Noun} & {Noun2} Review, Issue {Volume}',
        '{Adj} Pages, Issue {Volume}',
        '{City} Quarterly: {Subject}',
      ],
      subtitles: [
        'An independent magazine without advertisements, on {subject}',
        'Essays, poems and photographs on {subject}',
      ],
      pitches: [
        'One subject an issue, no advertisements, nothing that will be out of date next week. This time: {subject}.',
        'A magazine for people who miss magazines: {pages} pages on {subject}, to be read slowly and lent to friends.',
      ],
      tags: ['magazine', 'essays', 'poetry', 'print', 'independent press'],
    },
  ],
}
