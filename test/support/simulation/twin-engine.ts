/**
 * Two engines that are given the same statements at the same moments, to hold the model of ClickHouse against ClickHouse:
 * every answer of the one is compared with that of the other. The world goes on with the real one's.
 */
import type { Engine } from './engine.ts'
import type { KindOf } from './statement-kinds.ts'

export interface TwinEngine {
  engine: Engine
  /** Answers that differed, as text. */
  differences: string[]
  /** Answers that were compared. */
  compared(): number
}

export function createTwinEngine(real: Engine, model: Engine, kindOf: KindOf): TwinEngine {
  const differences: string[] = []
  let compared = 0
  return {
    differences,
    compared: () => compared,
    engine: {
      async read(statement, startedAt) {
        const [rows, modelled] = await Promise.all([
          real.read(statement, startedAt),
          model.read(statement, startedAt),
        ])
        compared++
        const [is, should] = [normal(modelled, rows), normal(rows, rows)]
        if (is !== should) differences.push(`${kindOf(statement)}: ${should}, and in the model ${is}`)
        return rows
      },
      async stage(statement, kind, startedAt) {
        const staged = [
          await real.stage(statement, kind, startedAt),
          await model.stage(statement, kind, startedAt),
        ]
        return {
          async publish(options) {
            for (const rows of staged) await rows.publish(options)
          },
        }
      },
      async run(statement, kind) {
        await real.run(statement, kind)
        await model.run(statement, kind)
      },
      async insert(insert) {
        await real.insert(insert)
        await model.insert(insert)
      },
    },
  }
}

type Row = Record<string, unknown>

/** Rows as text, in an order of their own: ClickHouse promises none. Of the columns that the real rows have. */
function normal(rows: readonly unknown[], real: readonly unknown[]): string {
  // When the oldest event of a batch entered the log is for the metrics; the model does not know it.
  const columns = Object.keys((real[0] ?? {}) as Row).filter(column => column !== 'oldestAt')
  const lines = rows.map(row => JSON.stringify(columns.map(column => sorted(row as Row, column))))
  return lines.toSorted().join('\n')
}

function sorted(row: Row, column: string): unknown {
  const { ids } = row
  const value = row[column]
  if (!Array.isArray(ids) || !Array.isArray(value)) return value
  return value.map((item, at) => [ids[at], item]).toSorted()
}
