/**
 * Tuning: sizes and times of intake and queries. Each is the default of the setting `origo.NAME` and follows it.
 */
const MIB = 1024 * 1024;

export interface Tuning {
  /** At most this many rows wait to be written. Further ones are refused. */
  intakeWaitingMax: number;
  /** At most this many rows are written in one transaction. More would make the next ones wait longer. */
  intakeTogetherMax: number;
  /**
   * The time between the starts of two transactions. Rows that arrive meanwhile share the second one, whose cost hardly
   * depends on their number.
   */
  intakeApartMs: number;
  /** Intake is refused when the disk of DATA_DIR has less free space, since DuckDB does not survive a full disk. */
  diskReserveBytes: number;
  /** At most this many outliers of each box are drawn. */
  chartOutliersMax: number;
  chartCdfSteps: number;
  /** At most this many points of a time series, over all groups. */
  chartPointsMax: number;
  bootstrapResamples: number;
  /** With fewer clients in a group, the interval of a bootstrap is too narrow. */
  clientsEnough: number;
}

export const TUNING_DEFAULT: Tuning = {
  intakeWaitingMax: 10_000,
  intakeTogetherMax: 2000,
  intakeApartMs: 60,
  diskReserveBytes: 256 * MIB,
  chartOutliersMax: 200,
  chartCdfSteps: 200,
  chartPointsMax: 5000,
  bootstrapResamples: 1000,
  clientsEnough: 20,
};
