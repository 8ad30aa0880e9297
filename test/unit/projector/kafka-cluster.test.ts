/** Positions of a consumer group that were copied to another cluster must not be used. */
import { expect, test } from 'vitest'
import { clusterFault } from '../../../services/projector/kafka-cluster.ts'

const lost = { cluster: 'lost', group: 'g' }
const restored = { cluster: 'restored', group: 'g' }

test('positions in a cluster from which the group never filled the tables are refused, and both clusters are named', () => {
  expect(clusterFault({ ...restored, hasPositions: true }, [lost])).toMatch(
    /the group g has positions in the Kafka cluster restored, .* filled from lost, .*PLEDGEVIEW_KAFKA_GROUP/,
  )
})

test('positions that another group made while it filled the tables from there do not help', () => {
  expect(clusterFault({ ...restored, hasPositions: true }, [lost, { ...restored, group: 'new' }])).toMatch(
    'never filled these tables',
  )
})

test('a group without positions reads everything, so it may begin on any cluster', () => {
  expect(clusterFault({ ...restored, hasPositions: false }, [lost])).toBeUndefined()
})

test('a group goes on in a cluster from which it fills the tables, whatever came before it', () => {
  expect(clusterFault({ ...restored, hasPositions: true }, [lost, restored])).toBeUndefined()
})

test('tables of an earlier version, and new ones, know no cluster: the positions are believed as before', () => {
  expect(clusterFault({ ...restored, hasPositions: true }, [])).toBeUndefined()
})

test('a new group in the same cluster is no other cluster', () => {
  expect(clusterFault({ ...lost, group: 'new', hasPositions: true }, [lost])).toBeUndefined()
})

test('back in a cluster that it has left since, its positions are refused: a mirror may have copied them', () => {
  const there = { ...restored, hasPositions: true }
  expect(clusterFault(there, [restored, lost])).toMatch('filled from lost')
  expect(clusterFault({ ...lost, hasPositions: true }, [restored, lost])).toBeUndefined()
})
