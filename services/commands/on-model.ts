/** Where a command works: on Kafka and ClickHouse, or on the model of a data directory. */
import { type ModelAccess, withModel } from '../local/access.ts'
import { type DataDirectory, openExistingDataDirectory } from '../local/data-directory.ts'
import { type Config, readConfig } from '../runtime/config.ts'
import { embeddedDirectory } from './command.ts'

/** Runs the work at its place. `isCaughtUp`: everything in the journal is folded before the work begins. Default: it need not be. */
export async function onModel<T>(
  dataDir: string | undefined,
  distributed: (config: Config) => Promise<T>,
  embedded: (model: ModelAccess, config: Config, directory: DataDirectory) => Promise<T>,
  { isCaughtUp }: { isCaughtUp: boolean } = { isCaughtUp: false },
): Promise<T> {
  const config = readConfig(process.env)
  const root = embeddedDirectory(dataDir, config)
  if (root === undefined) return distributed(config)
  const directory = openExistingDataDirectory(root)
  return withModel(directory, config, { isCaughtUp }, model => embedded(model, config, directory))
}
