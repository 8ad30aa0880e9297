/**
 * Starts the child server, on free ports if none are given, with bounds that fit the machine.
 *
 * It does not restart the server: `server.ts` does.
 */
import { randomBytes } from 'node:crypto'
import { availableParallelism, totalmem } from 'node:os'
import { resolve } from 'node:path'
import { retry } from '../runtime/async/retry.ts'
import { clickHouseBytesMin } from '../runtime/config.ts'
import { freePort } from '../runtime/free-port.ts'
import { boundAnalysts } from './analysts.ts'
import { type Child, startChild } from './child.ts'
import type { ServerConfiguration } from './configuration.ts'
import { ServerStartError } from './start-error.ts'

export interface StartOptions
  extends Pick<ServerConfiguration, 'dataDirectory' | 'filesDirectory' | 'databases'>,
    Partial<Pick<ServerConfiguration, 'analyst' | 'programPassword' | 'more' | 'moreUsers'>> {
  /** 0 or none: a free port. */
  httpPort?: number | undefined
  /** 0: a free port. None: no native protocol. */
  nativePort?: number | undefined
  /** Default: half of the memory of the machine, or of the container, at least 512 MiB. */
  memoryBytesMax?: number | undefined
}

const portAttemptsMax = 5
// The server of a parent that was just killed may still be ending.
const heldMsMax = 10_000
const heldPauseMs = 100

/** Resolves once it answers. Throws `ServerStartError`. */
export async function start(options: StartOptions) {
  async function attempt() {
    const configuration: ServerConfiguration = {
      ...options,
      dataDirectory: resolve(options.dataDirectory),
      filesDirectory: resolve(options.filesDirectory),
      httpPort: options.httpPort || (await freePort()),
      nativePort: options.nativePort === 0 ? await freePort() : options.nativePort,
      programPassword: options.programPassword ?? randomBytes(32).toString('hex'),
      analyst: options.analyst,
      memoryBytesMax: options.memoryBytesMax ?? defaultMemoryBytesMax(),
      cores: availableParallelism(),
    }
    return { configuration, child: await startAgain(configuration) }
  }
  // A port may be taken that was free when it was chosen here. Then another port may work.
  return retry(attempt, { isRetryable: isTaken('port'), attemptsMax: portAttemptsMax, pauseMsMin: 0 })
}

const isTaken = (what: 'directory' | 'port') => (error: unknown) =>
  error instanceof ServerStartError && error.taken === what

/** Starts on known ports. Waits until a previous server has released the directory. */
export function startAgain(configuration: ServerConfiguration): Promise<Child> {
  return retry(() => startBounded(configuration), {
    isRetryable: isTaken('directory'),
    msMax: heldMsMax,
    pauseMsMin: heldPauseMs,
  })
}

async function startBounded(configuration: ServerConfiguration): Promise<Child> {
  const child = await startChild(configuration)
  try {
    if (configuration.analyst) await boundAnalysts(configuration)
    return child
  } catch (error) {
    await child.kill()
    throw error
  }
}

function defaultMemoryBytesMax(): number {
  const constrained = process.constrainedMemory()
  const total = constrained > 0 && constrained < totalmem() ? constrained : totalmem()
  return Math.max(clickHouseBytesMin, Math.floor(total / 2))
}
