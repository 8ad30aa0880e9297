/**
 * How long the data teams' questions take at 400,000 campaigns and 10 M pledges: the examples of `contracts/tables/examples`,
 * the pictures of the portal, and the panels of the boards, one after the other, as the data teams' user, with its bounds.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { readExamples } from '../../services/portal/guide/data-examples.ts'
import { defaultDatabases } from '../../services/tables/generations.ts'
import { nameDatabases } from '../../services/tables/migrate.ts'
import { askAsAnalyst } from '../support/analyst.ts'
import { expandSql, sqlQueries } from '../support/boards/boards.ts'
import { startBenchProcess } from './bench-process.ts'
import { campaignIdOf, type PlatformSize } from './platform.ts'
import type { QuestionsInput, QuestionsReady } from './questions-service.ts'
import { type BenchReport, figureOf } from './report.ts'
import { summarize } from './samples.ts'
import type { Workspace } from './workspace.ts'

interface Question {
  name: string
  sql: string
}

const startMsMax = 900_000
const turns = 3
/** Above this a question has to say why. */
const msMax = 1_000

/** What the boards show, ms. */
const shownMs = 30 * 86_400_000
/** Of the bench's platform (cold-campaigns.sql). */
const categories = 15

const pictures = new URL('../../services/portal/guide/sql/', import.meta.url)

export async function benchQuestions(workspace: Workspace, size: PlatformSize): Promise<BenchReport> {
  const input: QuestionsInput = { directory: workspace.directory('questions'), ...size }
  const service = await startBenchProcess<QuestionsReady>({
    script: 'questions-service.ts',
    input,
    msMax: startMsMax,
  })
  try {
    const { sqlUrl, historyRows } = service.ready
    const samples = new Map<string, number[]>()
    const failed = new Map<string, string>()
    // The first turn reads from disk and is not counted.
    for (let turn = 0; turn <= turns; turn++) {
      for (const { name, sql } of questions()) {
        if (failed.has(name)) continue
        const answer = await ask(sqlUrl, sql)
        if (typeof answer === 'string') failed.set(name, answer)
        else if (turn > 0) samples.set(name, [...(samples.get(name) ?? []), answer])
      }
    }
    return {
      bench: 'questions',
      notes: [
        `${size.campaigns} campaigns with 5 tiers each, ${size.pledges} pledges, and ${historyRows} rows of history in two years;`,
        `one query at a time as the data teams' user. The figure is the median of ${turns} turns.`,
        ...[...failed].map(([name, reason]) => `${name} FAILED: ${reason}`),
      ],
      figures: [...samples].map(([name, times]) => figureOf(name, 'ms', summarize(times), { atMost: msMax })),
    }
  } finally {
    await service.end()
  }
}

function questions(): Question[] {
  const drawn = readdirSync(pictures).map(file => ({
    name: `picture ${file.replace('.sql', '')}`,
    // The data teams' user has bounds of its own, and may not ask for more.
    sql: nameDatabases(readFileSync(new URL(file, pictures), 'utf8'), defaultDatabases).replace(
      /^SETTINGS .*$/m,
      '',
    ),
  }))
  const panels = sqlQueries().map(({ name, text }) => ({
    name,
    sql: expandSql(text, {
      from: dayOf(Date.now() - shownMs),
      to: dayOf(Date.now()),
      variables: {
        category: Array.from({ length: categories }, (_, n) => `Category ${n}`),
        campaign: [campaignIdOf(1)],
      },
    }),
  }))
  return [...readExamples(defaultDatabases.views), ...drawn, ...panels]
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

/** How long the answer took, ms; or why there is none. */
async function ask(sqlUrl: string, sql: string): Promise<number | string> {
  const startedMs = performance.now()
  const { status, text } = await askAsAnalyst(sqlUrl, sql)
  return status === 200 ? performance.now() - startedMs : text.slice(0, 200)
}
