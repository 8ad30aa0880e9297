/**
 * Two engines that get the same statements at the same times, to compare the model of ClickHouse with ClickHouse: every answer
 * of one is compared with that of the other. The world continues with the real one's answers.
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
        const first = await real.stage(statement, kind, startedAt)
        const second = await model.stage(statement, kind, startedAt)
        return {
          rows: first.rows,
          async publish(options) {
            await first.publish(options)
            await second.publish(options)
          },
        }
      },
      touchedBy: statement => model.touchedBy(statement),
      async insert(insert) {
        await real.insert(insert)
        await model.insert(insert)
      },
    },
  }
}

type Row = Record<string, unknown>

/** Rows as text, sorted, because ClickHouse promises no order. Only the columns that the real rows have. */
function normal(rows: readonly unknown[], real: readonly unknown[]): string {
  // The model has no times of events.
  const ofTimes = ['oldestAt', 'isOfBacklog']
  const columns = Object.keys((real[0] ?? {}) as Row).filter(column => !ofTimes.includes(column))
  const lines = rows.map(row => JSON.stringify(columns.map(column => sorted(row as Row, column))))
  return lines.toSorted().join('\n')
}

function sorted(row: Row, column: string): unknown {
  const { ids } = row
  const value = row[column]
  // How many rows are new tells only whether there are any: some of them are superseded.
  if (column === 'unnoted' || column === 'underived') return Number(value) > 0
  if (!Array.isArray(ids) || !Array.isArray(value)) return value
  return value.map((item, at) => [ids[at], item]).toSorted()
}
