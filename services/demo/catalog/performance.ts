/** Music, Film & Video and Stage. */
import { soundTiers, stageTiers } from './event-tiers.ts'
import type { Category } from './types.ts'

export const music: Category = {
  name: 'Music',
  projectType: 'MUSIC',
  weight: 10,
  studios: ['Quartet', 'Ensemble', 'Recordings', 'Sound', 'Choir', 'Band'],
  delivery: 'parcel',
  tiers: soundTiers,
  words: {
    songs: ['nine', 'ten', 'eleven', 'twelve'],
    hall: [
      'a disused water tower',
      'a wooden chapel',
      'the reading room of a closed library',
      'an empty grain silo',
      'a dance hall from the fifties',
    ],
    instruments: [
      'two fiddles and a borrowed harmonium',
      'upright piano, double bass and brushes',
      'old synthesisers and a glass of water',
      'voice, cello and a tape loop',
      'a brass section that just fits into one van',
    ],
  },
  making: [
    'We record live, all in one room, in {hall}. What you hear is what happened, with {instruments}.',
    'The {songs} pieces are written and rehearsed. Four days in {hall} are booked; a good friend with good ears sits at the desk.',
  ],
  spending: [
    'The goal pays for the room, the mix, the pressing and a fair day’s wage for everyone who plays.',
    'Recording is covered by our own savings. The campaign pays for mastering, pressing and sleeves.',
  ],
  risks: [
    'Pressing plants are busy, and a record may come later than the download. The download will be on time.',
    'Someone could catch a cold in the week of the recording. The room can be moved once, free of charge.',
  ],
  genres: [
    {
      name: 'Folk',
      thing: 'album',
      titles: [
        'Songs for a {Adj} {Noun}',
        'The {Creature} Sessions',
        'From {Noun2} to {Noun2b}',
        'Ballads of the {Adj} {Noun2}',
        '{Creature} in the Hayloft',
        'The {Noun} Choir',
        'Old Roads, {Adj} Shoes',
      ],
      subtitles: ['{Songs} songs with {instruments}', 'A folk album, recorded in {hall}'],
      pitches: [
        '{Songs} songs, some old, most new, all with a chorus that you can sing on the second time round. We play them with {instruments}.',
        'We have carried these songs from kitchen to kitchen for {years} years. It is time that they hold still for forty minutes.',
      ],
      tags: ['folk', 'acoustic', 'album', 'live recording'],
    },
    {
      name: 'Electronic',
      thing: 'record',
      titles: [
        '{Noun} Frequencies',
        '{Adj} Machines',
        'Music for {Noun} and {Noun2}',
        '{Noun2} Tapes',
        'Slow {Noun}',
        'Signals From the {Noun2b}',
      ],
      subtitles: ['{Songs} long pieces made with {instruments}', 'Ambient music from {hall}'],
      pitches: [
        'Slow music for working, walking and being stuck in trains. {Songs} pieces, made from field recordings of {hall}.',
        'We put {instruments} into {hall} and let the tape run until the neighbours asked what it was. They stayed.',
      ],
      tags: ['electronic', 'ambient', 'field recording', 'vinyl'],
    },
    {
      name: 'Jazz',
      thing: 'record',
      titles: [
        'Live at the {Adj} {Noun}',
        '{Creature} Steps',
        'The {Noun2} Suite',
        'After Hours, {City}',
        '{Adj} Blue',
        'Nine {Creatures}',
      ],
      subtitles: ['A quintet, one room, no second takes', 'New music for {instruments}'],
      pitches: [
        'A suite in {songs} parts for people who say that they do not like jazz, and for those who do.',
        'Every first Tuesday for {years} years we have played in {hall}. This record is the best of those evenings, played once more.',
      ],
      tags: ['jazz', 'live recording', 'quintet', 'vinyl'],
    },
  ],
}

export const film: Category = {
  name: 'Film & Video',
  projectType: 'FILM',
  weight: 8,
  studios: ['Pictures', 'Films', 'Moving Image', 'Film Club', 'Animation'],
  delivery: 'event',
  tiers: stageTiers,
  words: {
    people: [
      'the last three bell founders of the region',
      'a women’s rowing team in its seventies',
      'the night shift of a ferry',
      'a village that moved its church',
      'two sisters who restore cinema organs',
      'the people who count birds',
    ],
    length: ['18', '24', '52', '74', '88'],
  },
  making: [
    'Eleven days of shooting are done. Six more and the edit are ahead of us; there is a first cut of the opening in the gallery.',
    'We work with a crew of {teamSize}, little light and a lot of waiting. What is there so far fills one shelf and two hard disks.',
  ],
  spending: [
    'The goal pays for the remaining days, sound, colour and subtitles in four languages.',
    'Nobody on the crew works for nothing: most of the money is wages, the rest is travel and a very large hard disk.',
  ],
  risks: [
    'Real people have real lives: if somebody needs a pause, we wait. Two spare weeks are kept for it.',
    'Festivals sometimes ask for a film to stay offline for a while. Supporters see it first, in any case.',
  ],
  genres: [
    {
      name: 'Documentary',
      thing: 'film',
      titles: [
        'The {Noun} Keepers',
        'Before the {Noun2}',
        'The {Adj} Mile',
        'Counting {Creatures}',
        'The Night Shift of {City}',
        'A {Noun} Comes Home',
        'Everything but the {Noun}',
      ],
      subtitles: ['A documentary about {people}', '{Length} minutes with {people}'],
      pitches: [
        'This is a film about {people}. It has no narrator and no drone shots, but it has time.',
        'We wanted to make a short portrait of {people}. After {years} years there is so much more to tell.',
      ],
      tags: ['documentary', 'portrait', 'independent film', 'community'],
    },
    {
      name: 'Short Films',
      thing: 'short film',
      titles: [
        '{Noun}, Closed on Sundays',
        'Eleven Minutes to {Noun2}',
        'The {Adj} Guest',
        'Last Stop: {Noun}',
        'Two for the {Noun}',
        'The {Creature} on the Landing',
        'Please Return the {Noun}',
      ],
      subtitles: ['A short film set in one room and one night', 'A comedy about {people}, almost true'],
      pitches: [
        'One room, one night, two people who have both come to return the same {noun}. A short film that is funny until it is not.',
        'The script was written in a week and rewritten for {years} years. Now the actors are free at the same time, once.',
      ],
      tags: ['short film', 'comedy', 'drama', 'debut'],
    },
    {
      name: 'Animation',
      thing: 'animated film',
      titles: [
        '{Creature} and the {Adj} {Noun}',
        'The {Noun} That Walked',
        'Little {Creature}, Big {Noun2}',
        'The {Adj} Suitcase',
        '{Creature} Takes the {Noun}',
        'Where {Creatures} Go in Winter',
      ],
      subtitles: [
        'Stop motion, made from felt, wire and patience',
        'A hand-drawn film without a single word',
      ],
      pitches: [
        'Twelve pictures for every second, each moved by hand: a {creature} carries a {noun} over the {noun2}. It takes us a week to film what you see in ten seconds.',
        'A film without words, so that anyone can watch it, with a {creature} that we have built {years} times until it could raise one eyebrow.',
      ],
      tags: ['animation', 'stop motion', 'family', 'hand made'],
    },
  ],
}

export const stage: Category = {
  name: 'Stage',
  projectType: 'PERFORMANCE',
  weight: 6,
  studios: ['Players', 'Theatre', 'Company', 'Puppets', 'Dance'],
  delivery: 'event',
  tiers: stageTiers,
  words: {
    venue: [
      'a disused tram depot',
      'the old fish market',
      'a barn with good acoustics',
      'the empty indoor pool',
      'a tent by the river',
    ],
    nights: ['six', 'eight', 'twelve', 'twenty'],
  },
  making: [
    'We rehearse for seven weeks and play {nights} nights in {venue}. Seats are few, so everybody sits close.',
    'The piece has been shown as a work in progress. Now we build it in full, for {venue}, and play {nights} nights.',
  ],
  spending: [
    'Tickets pay for the nights; the campaign pays for the weeks before them: rehearsals, set, light, insurance.',
    'The goal covers the stage, the costumes and wages for rehearsals. Every tenth seat goes to someone who could not pay.',
  ],
  risks: [
    'Should {venue} not be ready, we play in the hall of our neighbours. The dates stay.',
    'We understudy each other. If a night has to be cancelled all the same, your seat is good for any other.',
  ],
  genres: [
    {
      name: 'Plays',
      thing: 'production',
      titles: [
        'The {Adj} Understudy',
        'Waiting for the {Noun}',
        'Three {Creatures} and the {Noun}',
        'The {Noun} Verdict',
        'Supper With the {Creatures}',
        'Nobody Leaves the {Noun}',
        'The {Adj} Inspector',
      ],
      subtitles: ['A new play for {nights} nights in {venue}', 'A comedy with one door and no exit'],
      pitches: [
        'Five people are locked in {venue} by mistake, with a {noun} that belongs to none of them. A comedy, until midnight.',
        'A new play about what we tell our neighbours, staged where you can hear every whisper: in {venue}.',
      ],
      tags: ['theatre', 'new writing', 'comedy', 'site specific'],
    },
    {
      name: 'Dance',
      thing: 'dance piece',
      titles: [
        '{Noun2} Crossing',
        'The Weight of {Nouns}',
        'Slow {Creature}',
        '{Noun} / {Noun2}',
        'Forty Steps to the {Noun2}',
        'The {Adj} Floor',
      ],
      subtitles: ['A dance piece for {teamSize} dancers and {helpers} amateurs', 'New dance in {venue}'],
      pitches: [
        'Half of those on stage have never danced in public. The other half has never been so nervous. Together they cross {venue}, once.',
        'How does a {creature} move when it thinks that nobody looks? That question kept us in the studio for a year.',
      ],
      tags: ['dance', 'contemporary', 'community cast'],
    },
    {
      name: 'Puppetry',
      thing: 'puppet show',
      titles: [
        'The {Creature} King’s Suitcase',
        '{Creature}, Thief of {Nouns}',
        'A Small Opera for {Creatures}',
        'The {Noun} in the Suitcase',
        '{Creature} and the Paper {Noun2}',
      ],
      subtitles: [
        'A touring show that fits into a single van',
        'Puppets, shadows and a live {noun} orchestra',
      ],
      pitches: [
        'Fourteen puppets, two players, one van: we want to bring this show to places that have had no theatre for years.',
        'A {creature} opens a suitcase and finds a whole {noun} inside. Told with shadows, string and a lot of paper.',
      ],
      tags: ['puppetry', 'family', 'touring', 'shadow theatre'],
    },
  ],
}
