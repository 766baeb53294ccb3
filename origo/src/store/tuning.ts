/**
 * Tuning: sizes and times of intake and questions. Each is the default of the setting `origo.NAME` (settings.ts) and
 * follows it.
 */
const MIB = 1024 * 1024;

export interface Tuning {
  /** Rows that may wait to be written; beyond it intake is refused. */
  intakeWaitingMax: number;
  /** Rows of one transaction: more would only make those that come next wait longer. */
  intakeTogetherMax: number;
  /**
   * Between the beginnings of two transactions: what comes meanwhile shares the second one's cost, which hardly depends
   * on its rows.
   */
  intakeApartMs: number;
  /**
   * Of the disk of DATA_DIR; intake is refused when less is free, since DuckDB does not survive a disk that is full.
   */
  diskReserveBytes: number;
  /** Of each box. */
  chartOutliersMax: number;
  chartCdfSteps: number;
  /** Of a time series, over all groups. */
  chartPointsMax: number;
  bootstrapResamples: number;
  /** Fewer clients than this in a group leave the percentiles of a bootstrap too narrow. */
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
