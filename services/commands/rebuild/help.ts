/** The help of `pledgeview rebuild` and of its subcommands. */
import { commonOptions, dataDirOption } from '../command.ts'
import type { Help } from '../help.ts'

const acceptLoss = {
  '--accept-loss': 'promote although the live tables know something that the history does not contain',
}

export const rebuildOptions = {
  '--dry-run': 'build and compare, print what would change, and drop the new tables',
  ...acceptLoss,
  '--ignore-disk': 'begin although the disk seems too small',
  ...dataDirOption,
  '--json':
    'print one JSON object per line: progress once a second, and a last one of the type result, or with an error if it could not begin',
}

export const rebuildHelp: Help = {
  call: 'rebuild [--dry-run] [--accept-loss] [--ignore-disk] [--data-dir D] [--json]',
  does:
    'Replays the event log into new tables beside the live ones, verifies them, and makes them the current ones. The API and the projector ' +
    'go on meanwhile. A campaign that comes out the same keeps its updated_at. If a rebuild was killed or interrupted, the same ' +
    'command goes on with it. The previous tables are kept until rebuild drop. It runs in the process of this command: with Kafka ' +
    'in a consumer group of its own, embedded beside the service that runs on the data directory. Exit code: 0 done; 1 failed, ' +
    'refused or interrupted; 2 called wrongly.',
  options: rebuildOptions,
  examples: ['rebuild --dry-run', 'rebuild'],
  cost: 'Free disk space of three times the live tables, and CPU time for the whole log: minutes to hours.',
  subcommands: {
    status: {
      call: 'rebuild status [--data-dir D] [--json]',
      does: 'Shows how far the rebuild is, whether a process works on it, and how the last one ended.',
      options: commonOptions,
      examples: ['rebuild status'],
      cost: 'One query. It changes nothing.',
    },
    rollback: {
      call: 'rebuild rollback [--accept-loss] [--data-dir D] [--json]',
      does: 'Brings the previous tables up to date and makes them the current ones again. A second rollback returns to the rebuilt tables.',
      options: { ...acceptLoss, ...commonOptions },
      examples: ['rebuild rollback'],
      cost: 'It reads the part of the event log that the previous tables have not seen.',
    },
    drop: {
      call: 'rebuild drop [--data-dir D] [--json]',
      does: 'Drops all tables but the current ones: the previous ones, and those of a rebuild that is not finished. It frees their disk, and there is no rollback any more.',
      options: commonOptions,
      examples: ['rebuild drop'],
      cost: 'A few seconds.',
    },
  },
}
