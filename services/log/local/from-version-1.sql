-- Version 1 kept positions, which stand in the tables now, and the watermarks among them.
INSERT INTO watermarks
SELECT consumer, ifnull(max(next) FILTER (WHERE topic = 'watermark'), 0), ifnull(max(next) FILTER (WHERE topic = 'shown watermark'), 0)
FROM positions GROUP BY consumer;

DROP TABLE positions;
DROP TABLE consumers;
