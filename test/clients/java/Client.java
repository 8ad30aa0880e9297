import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Array;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/**
 * Does what tools such as DBeaver and Metabase do, through ClickHouse's JDBC driver.
 *
 * <p>Reads its job from stdin as JSON, and prints the results as one JSON object, with every value as text.
 */
public class Client {
  static final String CAMPAIGNS = "SELECT * FROM campaigns ORDER BY campaign_id";

  public static void main(String[] args) throws Exception {
    JsonObject job =
        JsonParser.parseReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).getAsJsonObject();
    String database = job.get("database").getAsString();
    String url =
        "jdbc:clickhouse://%s:%d/%s"
            .formatted(job.get("host").getAsString(), job.get("httpPort").getAsInt(), database);
    Properties properties = new Properties();
    properties.setProperty("user", job.get("user").getAsString());
    properties.setProperty("password", "");

    Map<String, Object> seen = new LinkedHashMap<>();
    try (Connection connection = DriverManager.getConnection(url, properties)) {
      seen.putAll(metadata(connection.getMetaData(), database));
      seen.put("campaigns", rows(connection, CAMPAIGNS));
      seen.put("rewards", rows(connection, "SELECT * FROM rewards ORDER BY campaign_id, reward_id"));
      seen.put("categories", rows(connection, "SELECT * FROM categories ORDER BY category"));
      seen.put("totals", rows(connection, "SELECT * FROM platform_totals"));
      seen.put("forbidden", refusal(() -> rows(connection, "SELECT * FROM pledgeview_read_1.campaigns")));
      seen.put(
          "broken",
          refusal(() -> rows(connection, "SELECT throwIf(number = 900000, 'it broke') FROM numbers(1000000)")));
      seen.put("withinBounds", withinBounds(connection));
      seen.put("cancelled", cancel(connection));
      seen.put("dbeaver", dbeaver(connection, database));
    }
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
    out.println(new GsonBuilder().serializeNulls().create().toJson(seen));
  }

  /** What a tool shows in its tree of schemas, views and columns. */
  static Map<String, Object> metadata(DatabaseMetaData metadata, String database) throws SQLException {
    List<String> databases = new ArrayList<>();
    try (ResultSet schemas = metadata.getSchemas()) {
      while (schemas.next()) databases.add(schemas.getString("TABLE_SCHEM"));
    }
    List<String> views = new ArrayList<>();
    try (ResultSet tables = metadata.getTables(null, database, "%", new String[] {"VIEW"})) {
      while (tables.next()) views.add(tables.getString("TABLE_NAME"));
    }
    List<Map<String, Object>> columns = new ArrayList<>();
    try (ResultSet found = metadata.getColumns(null, database, "%", "%")) {
      while (found.next()) {
        Map<String, Object> column = new LinkedHashMap<>();
        column.put("view", found.getString("TABLE_NAME"));
        column.put("name", found.getString("COLUMN_NAME"));
        column.put("type", found.getString("TYPE_NAME"));
        column.put("comment", found.getString("REMARKS"));
        columns.add(column);
      }
    }
    return Map.of("databases", databases, "views", views, "columns", columns);
  }

  /** Decodes every column of every row. */
  static List<Map<String, Object>> rows(Connection connection, String query) throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet result = statement.executeQuery(query)) {
      ResultSetMetaData columns = result.getMetaData();
      List<Map<String, Object>> rows = new ArrayList<>();
      while (result.next()) {
        Map<String, Object> row = new LinkedHashMap<>();
        for (int i = 1; i <= columns.getColumnCount(); i++) {
          row.put(columns.getColumnName(i), text(result.getObject(i)));
        }
        rows.add(row);
      }
      return rows;
    }
  }

  static int withinBounds(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      // The driver sends it as max_execution_time.
      statement.setQueryTimeout(30);
      String query = "SELECT getSetting('max_threads') SETTINGS max_threads = 1";
      try (ResultSet result = statement.executeQuery(query)) {
        result.next();
        return result.getInt(1);
      }
    }
  }

  /** The stop button: a second thread cancels the running query. */
  static Map<String, Object> cancel(Connection connection) throws Exception {
    try (Statement statement = connection.createStatement()) {
      String slow = "SELECT sleepEachRow(0.5) FROM numbers(6) SETTINGS max_block_size = 1";
      Thread running = new Thread(() -> refusal(() -> statement.executeQuery(slow).next()));
      running.start();
      Thread.sleep(700);
      Map<String, Object> refused = refusal(statement::cancel);
      running.join();
      return refused;
    }
  }

  /** What DBeaver queries in addition to JDBC's metadata. */
  static Map<String, Object> dbeaver(Connection connection, String database) throws SQLException {
    String tables =
        "SELECT name AS TABLE_NAME, engine AS TABLE_TYPE, database AS TABLE_SCHEM, comment AS REMARKS, * "
            + "FROM system.tables WHERE database = '" + database + "'";
    return Map.of(
        "engines", rows(connection, "SELECT name FROM system.table_engines").size(),
        "tables", rows(connection, tables).size(),
        "definition", rows(connection, "SHOW CREATE TABLE `" + database + "`.`rewards`").get(0).get("statement"));
  }

  interface Work {
    void run() throws Exception;
  }

  static Map<String, Object> refusal(Work work) {
    try {
      work.run();
      return null;
    } catch (SQLException error) {
      return Map.of("code", error.getErrorCode(), "message", error.getMessage());
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  static String text(Object value) throws SQLException {
    if (value instanceof Array array) return Arrays.deepToString((Object[]) array.getArray());
    return value == null ? null : value.toString();
  }
}
