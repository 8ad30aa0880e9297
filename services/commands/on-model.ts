/** Where a command works: on Kafka and ClickHouse, or on the model of a data directory. */

import { type ServersAccess, withServers } from '../distributed/access.ts'
import { type DirectoryNeeds, type EmbeddedAccess, withModel } from '../embedded/access.ts'
import { openExistingDataDirectory } from '../embedded/data-directory.ts'
import { type Config, readConfig } from '../runtime/config.ts'
import { embeddedDirectory } from './command.ts'

/** What commands work with. Each of the two forms has something that the other one has not. */
export type Model = EmbeddedAccess | ServersAccess

interface Needs extends DirectoryNeeds {
  /** Settings that it needs on servers. A data directory has its own secrets. */
  settings?: readonly (keyof Config)[]
}

/** Runs the work on the data directory, or on the servers that the environment names. */
export async function onModel<T>(
  dataDir: string | undefined,
  work: (model: Model) => Promise<T>,
  { settings = [], ...needs }: Needs = {},
): Promise<T> {
  const config = readConfig(process.env)
  const root = embeddedDirectory(dataDir, config)
  if (root === undefined) return withServers(config, settings, work)
  return withModel(openExistingDataDirectory(root), config, needs, work)
}
