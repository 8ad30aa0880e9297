/** Everything that a demo campaign can be about. */
import { art } from './art.ts'
import { community } from './community.ts'
import { fashion } from './fashion.ts'
import { design, technology } from './objects.ts'
import { film, music, stage } from './performance.ts'
import { comics, publishing } from './print.ts'
import { food, games } from './table.ts'
import type { Category } from './types.ts'

export const categories: readonly Category[] = [
  art,
  comics,
  community,
  design,
  fashion,
  film,
  food,
  games,
  music,
  publishing,
  stage,
  technology,
]
