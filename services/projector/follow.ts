/** Follows which generation is current. */
import { once } from 'node:events'
import { startRounds } from '../runtime/async/rounds.ts'
import { messageOf } from '../runtime/message-of.ts'
import { followMs } from '../tables/generation-log.ts'
import type { ProjectorServiceDependencies } from './service.ts'

// How often the leader looks at the views beside that: another process may have died while it made them.
const showMs = 60_000

/** Until the signal aborts: when another generation is current, reads on from its positions. The leader makes the views show it. */
export async function followGenerations(
  {
    follow,
    databases,
    reader,
    positions,
    showViews,
    monotonicMs,
    logger,
    sleep,
  }: ProjectorServiceDependencies,
  signal: AbortSignal,
): Promise<void> {
  let shown = { ledger: '', at: 0 }
  /** The generation that the reader was told to begin with, until it has its positions there. */
  let beginsIn: string | undefined

  /** Once for each generation: the reader may look for its positions for longer than the pause, and a restart begins that anew. */
  async function readFromCurrent(): Promise<void> {
    const { ledger } = databases
    if (!positions.areSuperseded()) beginsIn = undefined
    else if (beginsIn !== ledger) {
      await reader.restart()
      beginsIn = ledger
    }
  }

  async function look(stopping: AbortSignal): Promise<void> {
    await follow(stopping)
    await readFromCurrent()
    const isShown = shown.ledger === databases.ledger && monotonicMs() - shown.at < showMs
    if (isShown || !reader.leads()) return
    // A promotion may come while they are looked at.
    const { ledger } = databases
    await showViews()
    shown = { ledger, at: monotonicMs() }
  }

  const onError = (error: unknown) =>
    logger.warn({ error: messageOf(error) }, 'the current generation could not be followed')
  const rounds = startRounds(look, { pauseMs: followMs, onError, sleep })
  if (!signal.aborted) await once(signal, 'abort')
  await rounds.close()
}
