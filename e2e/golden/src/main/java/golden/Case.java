package golden;


/**
 * One fixture: its name, the bytes the official classes encode, and how they read bytes back.
 *
 * @param name  name of the line in the fixture file
 * @param bytes what Java writes
 * @param read  decodes bytes with the real classes and describes what it got; two encodings mean
 *              the same to Java exactly when their descriptions are equal
 */
record Case(String name, byte[] bytes, Reader read) {
    interface Reader {
        String describe(byte[] bytes) throws Exception;
    }

    /** What Java reads out of its own bytes. */
    String expected() throws Exception {
        return read.describe(bytes.clone());
    }
}
