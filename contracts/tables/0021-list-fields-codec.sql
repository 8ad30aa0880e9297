-- The fields of a list in a codec that is unpacked faster.
--
-- A page reads 50 scattered rows, and each of them unpacks its granule of 128. With LZ4 that takes a fifth of the processor
-- time off the statement. The column takes twice the disk: about 120 bytes a campaign instead of 60. Parts that were written
-- before keep their codec until they are merged.

ALTER TABLE ${model}.campaigns MODIFY COLUMN list_fields CODEC(LZ4);
