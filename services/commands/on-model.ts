/** Where a command works: on Kafka and ClickHouse, or on the model of a data directory. */

import { type ServersAccess, withServers } from '../distributed/access.ts'
import { type EmbeddedAccess, withModel } from '../embedded/access.ts'
import { openExistingDataDirectory } from '../embedded/data-directory.ts'
import { type Config, readConfig } from '../runtime/config.ts'
import { embeddedDirectory } from './command.ts'

/** What commands work with. Each of the two forms has something that the other one has not. */
export type Model = EmbeddedAccess | ServersAccess

interface Needs {
  /** In a data directory without a service, everything in the journal is folded before the work begins. Default: it need not be. */
  isCaughtUp?: boolean
  /** Beside the service of a data directory it asks only that, which answers also while ClickHouse is away. Default: ClickHouse, too. */
  asksService?: boolean
  /** Settings that it needs on servers. A data directory has its own secrets. */
  settings?: readonly (keyof Config)[]
}

/** Runs the work on the data directory, or on the servers that the environment names. */
export async function onModel<T>(
  dataDir: string | undefined,
  work: (model: Model) => Promise<T>,
  { isCaughtUp = false, asksService = false, settings = [] }: Needs = {},
): Promise<T> {
  const config = readConfig(process.env)
  const root = embeddedDirectory(dataDir, config)
  if (root === undefined) return withServers(config, settings, work)
  return withModel(openExistingDataDirectory(root), config, { isCaughtUp, asksService }, work)
}
