/** Words that any campaign may use, and paragraphs that fit any of them. */
import type { Delivery, Paragraphs, Words } from './types.ts'

export const sharedWords: Words = {
  adj: list(
    'hollow, salt, copper, paper, winter, ember, quiet, northern, amber, hidden, borrowed, drowned, wandering, ' +
      'velvet, crooked, restless, silver, thistle, gentle, forgotten, midnight, unlit, patient, saffron, tin, glass, ' +
      'clockwork, summer, slow, second, lesser, painted, sleeping, roaming, emerald, half-lit, seventh, weightless',
  ),
  noun: list(
    'lantern, harbour, orchard, compass, tide, archive, signal, kettle, bridge, garden, atlas, ferry, observatory, ' +
      'weathervane, staircase, market, lighthouse, workshop, carnival, almanac, railway, greenhouse, river, mill, ' +
      'bell, quarry, station, library, lagoon, causeway, cloud, harvest, telescope, meadow, envelope, chimney',
  ),
  noun2: list(
    'moon, sea, hill, winter, valley, shore, moor, border, sky, delta, forest, island, plain, estuary, ridge, north, ' +
      'morning, dark, frost, canal, dunes, fog, spring, thaw',
  ),
  creature: list(
    'heron, moth, fox, hare, lanternfish, magpie, badger, otter, owl, stag, salamander, raven, wren, lynx, ' +
      'cuttlefish, hedgehog, kingfisher, bear, crane, beetle, dormouse, pike, swallow, tortoise, goat, plover',
  ),
  years: list('two, three, four, five, six'),
  since: list('two, three, four, six, seven, nine'),
  teamSize: list('two, three, four, five, seven'),
  helpers: list('eleven, fourteen, seventeen, twenty-three, thirty, forty'),
  room: list(
    'spare room, shed, former bakery, basement, shared studio, back room, converted garage, boathouse',
  ),
  den: list(
    'a spare room above a bicycle shop, a basement behind a launderette, a shed next to the freight yard, ' +
      'a garage at the end of the tram line, a former bakery, a boathouse, the back room of a café, ' +
      'a shared studio above a hardware store',
  ),
}

/** How it came about. `{city}` is where the creator lives. */
export const stories: Paragraphs = {
  any: [
    'It began {since} years ago in {den} in {city}. What was an evening habit has become something that we would like to finish properly.',
    'We are a team of {teamSize} in {city}. Nobody asked us to do this; {since} years later we cannot imagine not doing it.',
    'After {since} years of working for others, this is the one we kept drawing on the backs of envelopes.',
    'A small grant from {city} paid for the trial run. To do it as well as it deserves, we need a few hundred people more than ourselves.',
    'You may know us from an earlier campaign. If not: we are {teamSize} people in {city} who answer every message ourselves.',
    'Three friends in {city}, one spreadsheet, and a promise made late at night. The spreadsheet has improved since.',
  ],
  parcel: [
    'The first version was made for a single friend. Then {helpers} people asked for one, and we ran out of excuses.',
    'Everything you see here was made in {city}, in {den}, with help from {helpers} patient testers.',
    'We have shown early versions at small fairs for {since} years. The question we heard most was where one could get it. This is the answer.',
    'Half of this was made on trains, the other half in {den} in {city}. It has been taken apart and put together {since} times.',
  ],
  event: [
    'The first evening was meant for a handful of friends. {Helpers} people came, stayed until midnight, and asked when the next one would be.',
    'We have tried it out for {since} years in {den} in {city}. It was always too small.',
  ],
}

/** What happens after the end; `{endMonth}`, `{workMonth}` and `{shipMonth}` are months, in this order. */
export const timetables: Paragraphs = {
  any: [
    'From {endMonth} on we write a short report each month. We plan to be done in {shipMonth}.',
    'Our plan has room for one thing to go wrong. Without it we are done before {shipMonth}; with it, in {shipMonth}.',
  ],
  parcel: [
    'The campaign ends in {endMonth}. Production follows until {workMonth}, and the first parcels leave in {shipMonth}.',
    'If all goes well: final samples in {workMonth}, finished in {shipMonth}. If it takes longer, you will hear it from us first.',
    'Most of the work is done. We order material as soon as the campaign has ended, see samples in {workMonth}, and deliver in {shipMonth}.',
  ],
  event: [
    'The campaign ends in {endMonth}. We begin in {workMonth}, and the doors open in {shipMonth}.',
    'If all goes well we can show you something in {workMonth}, and everything in {shipMonth}. You will be the first to be invited.',
    'The dates are fixed: we start in {workMonth} and open in {shipMonth}, in whatever weather.',
  ],
}

export const closings: readonly string[] = [
  'If you cannot back us, telling one person who would like this helps just as much.',
  'Thank you for reading this far. Questions go to the comments; we read them every evening.',
  'Every name on the list of supporters is there because somebody chose to trust strangers. We do not take it lightly.',
  'We would rather do this well than in a hurry.',
  'Come with us. It is more fun with people watching.',
  'Whatever is left over goes into the next one.',
  'No stretch goals, no countdown tricks: this is what we make, and this is what it costs.',
]

/** Paragraphs that creators add while a campaign is live. */
export const updates: Paragraphs = {
  any: [
    'Update: a supplier raised its prices. We have found another one in the next town; nothing changes for you.',
    'Update: a sharp-eyed reader found a mistake in our timetable. It is corrected above. Thank you!',
    'Update: we will be in the comments all Sunday afternoon to answer questions, with tea.',
    'Update: the local paper has written about us. Welcome to everyone who came from there.',
  ],
  parcel: [
    'Update: many of you asked about shipping. We found a partner, and every tier now ships to anywhere.',
    'Update: the test sample arrived this morning. It is better than we hoped; the photographs are in the gallery.',
    'Update: this page now comes in two more languages, thanks to volunteers among you.',
  ],
  event: [
    'Update: we have been lent the keys, two weeks early. There are first pictures in the gallery.',
    'Update: many of you asked about access. There is a ramp now, and a quiet hour on each day.',
  ],
}

/** Paragraphs that creators add once they have been funded. */
export const farewells: readonly string[] = [
  'Funded: thank you, all of you. We sleep for two days, then we begin.',
  'Funded: it is real now. The next report comes in a month, or earlier if something goes wrong.',
  'Funded: we did not expect so many of you. Whoever came too late can write to us.',
]

export const risks: Paragraphs = {
  any: [
    'We have done this before on a smaller scale. The larger number is new to us, so we planned in more time than we think we need.',
    'We are a small team: if one of us falls ill, things take longer. We would tell you within the week.',
    'Prices may move before we can order. We have put aside a tenth of the goal for it.',
  ],
  parcel: [
    'Customs and postal services are outside our control. Parcels are insured, and we replace what gets lost.',
    'Should the campaign bring in far more than we expect, we deliver in two waves, in the order of pledges.',
  ],
  event: [
    'Should a date have to move, whatever you chose stays good for the new one.',
    'Permits take as long as they take. Ours is promised, and we know whom to ask for it each morning.',
  ],
}

/** The paragraphs that fit a kind of delivery. */
export function paragraphsFor(paragraphs: Paragraphs, delivery: Delivery): readonly string[] {
  return [...paragraphs.any, ...paragraphs[delivery]]
}

function list(text: string): readonly string[] {
  return text.split(', ')
}
