// Does what Grafana does, with database/sql over ClickHouse's native protocol.
//
// Reads its job from stdin as JSON, and prints the results as one JSON object.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"reflect"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

const campaigns = "SELECT * FROM campaigns ORDER BY campaign_id"

type job struct {
	Host       string `json:"host"`
	NativePort int    `json:"nativePort"`
	User       string `json:"user"`
	Database   string `json:"database"`
}

type row map[string]any

type refused struct {
	Code    int32  `json:"code"`
	Message string `json:"message"`
}

func main() {
	var job job
	must(json.NewDecoder(os.Stdin).Decode(&job))
	db := clickhouse.OpenDB(&clickhouse.Options{
		Addr:        []string{fmt.Sprintf("%s:%d", job.Host, job.NativePort)},
		Auth:        clickhouse.Auth{Username: job.User, Database: job.Database},
		Compression: &clickhouse.Compression{Method: clickhouse.CompressionLZ4},
		// Grafana sends it with every query.
		Settings: clickhouse.Settings{"limit": 1_000_000},
	})
	ctx := context.Background()
	must(db.PingContext(ctx))
	// One connection for everything, to show that it outlives a refused query.
	conn := value(db.Conn(ctx))

	seen := map[string]any{
		"columns": rows(ctx, conn, `SELECT table AS view, name, type, comment FROM system.columns
			WHERE database = ? ORDER BY table, position`, job.Database),
		"campaigns":    rows(ctx, conn, campaigns),
		"rewards":      rows(ctx, conn, "SELECT * FROM rewards ORDER BY campaign_id, reward_id"),
		"categories":   rows(ctx, conn, "SELECT * FROM categories ORDER BY category"),
		"totals":       rows(ctx, conn, "SELECT * FROM platform_totals"),
		"forbidden":    refusal(ctx, conn, "SELECT * FROM pledgeview_read_1.campaigns"),
		"broken":       refusal(ctx, conn, "SELECT throwIf(number = 900000, 'it broke') FROM numbers(1000000)"),
		"withinBounds": withinBounds(ctx, conn),
	}
	must(conn.Close())
	seen["grafana"] = withDeadline(ctx, db, 60*time.Second)
	seen["cancelled"] = cancelled(ctx, db)
	must(json.NewEncoder(os.Stdout).Encode(seen))
}

// Decodes every column of every row, into the type that the driver names.
func rows(ctx context.Context, conn *sql.Conn, query string, arguments ...any) []row {
	found := value(conn.QueryContext(ctx, query, arguments...))
	defer found.Close()
	columns := value(found.ColumnTypes())
	read := []row{}
	for found.Next() {
		targets := make([]any, len(columns))
		for i, column := range columns {
			targets[i] = reflect.New(column.ScanType()).Interface()
		}
		must(found.Scan(targets...))
		row := row{}
		for i, column := range columns {
			row[column.Name()] = targets[i]
		}
		read = append(read, row)
	}
	must(found.Err())
	return read
}

func withinBounds(ctx context.Context, conn *sql.Conn) (threads uint64) {
	// The driver sends a deadline as max_execution_time, plus 5 s.
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	bounded := clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_threads": 1}))
	must(conn.QueryRowContext(bounded, "SELECT getSetting('max_threads')").Scan(&threads))
	return threads
}

// The server's answer to a query with a deadline.
func withDeadline(ctx context.Context, db *sql.DB, timeout time.Duration) *refused {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return refusal(ctx, db, campaigns)
}

// Cancels a running query, and sends another one. On few cores the server runs one query of an analyst at a time, so the
// answer comes late if the first query continues.
func cancelled(ctx context.Context, db *sql.DB) row {
	short, cancel := context.WithCancel(ctx)
	time.AfterFunc(700*time.Millisecond, cancel)
	refused := refusal(short, db, "SELECT sleepEachRow(0.5) FROM numbers(40) SETTINGS max_block_size = 1")
	started := time.Now()
	must(drain(ctx, db, campaigns))
	return row{"query": refused, "nextAfterMs": time.Since(started).Milliseconds()}
}

type querier interface {
	QueryContext(ctx context.Context, query string, arguments ...any) (*sql.Rows, error)
}

// Why the server does not run the query to its end; nil if it does.
func refusal(ctx context.Context, querier querier, query string) *refused {
	err := drain(ctx, querier, query)
	if err == nil {
		return nil
	}
	var exception *clickhouse.Exception
	if errors.As(err, &exception) {
		return &refused{exception.Code, exception.Message}
	}
	return &refused{0, err.Error()}
}

func drain(ctx context.Context, querier querier, query string) error {
	found, err := querier.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
	}
	return found.Err()
}

func value[T any](value T, err error) T {
	must(err)
	return value
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
