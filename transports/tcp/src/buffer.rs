/// Bytes in one piece, added at the end and consumed from the front.
///
/// Moves bytes to its front only when at least half of it has been consumed and the rest is less
/// than that: on average each byte is moved once at most, and when bytes are consumed as they
/// come, none is.
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Buffer {
    pub(crate) fn new(len: usize) -> Buffer {
        Buffer { bytes: vec![0; len].into(), start: 0, end: 0 }
    }

    pub(crate) fn shown(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// How many bytes [`tail`](Buffer::tail) has room for. 0 only if more than half is in use.
    pub(crate) fn room(&self) -> usize {
        self.bytes.len() - if self.moves() { self.end - self.start } else { self.end }
    }

    /// The room for what comes next.
    pub(crate) fn tail(&mut self) -> &mut [u8] {
        if self.moves() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.bytes[self.end..]
    }

    /// The first `len` bytes of the tail are filled.
    pub(crate) fn filled(&mut self, len: usize) {
        assert!(len <= self.bytes.len() - self.end);
        self.end += len;
    }

    /// Drops the first `len` of the bytes shown.
    pub(crate) fn consume(&mut self, len: usize) {
        let shown = self.end - self.start;
        assert!(len <= shown, "{len} bytes consumed where {shown} are shown");
        self.start += len;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    fn moves(&self) -> bool {
        self.start > 0 && self.start >= self.bytes.len() / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(buffer: &mut Buffer, next: &mut u8, len: usize) {
        for byte in &mut buffer.tail()[..len] {
            *byte = *next;
            *next += 1;
        }
        buffer.filled(len);
    }

    #[test]
    fn bytes_stay_in_order_and_in_one_piece_across_a_move() {
        let (mut buffer, mut next) = (Buffer::new(8), 0);
        fill(&mut buffer, &mut next, 8);
        assert_eq!(buffer.room(), 0);
        buffer.consume(3);
        assert_eq!(buffer.room(), 0, "five of eight are not worth a move");
        buffer.consume(2);
        assert_eq!(buffer.room(), 5);
        fill(&mut buffer, &mut next, 5);
        assert_eq!(buffer.shown(), [5, 6, 7, 8, 9, 10, 11, 12]);
    }

    #[test]
    fn an_emptied_buffer_has_all_its_room() {
        let (mut buffer, mut next) = (Buffer::new(8), 0);
        fill(&mut buffer, &mut next, 3);
        buffer.consume(3);
        assert_eq!((buffer.room(), buffer.tail().len()), (8, 8));
    }

    #[test]
    #[should_panic(expected = "2 bytes consumed where 1 are shown")]
    fn more_than_is_shown_cannot_be_consumed() {
        let (mut buffer, mut next) = (Buffer::new(8), 0);
        fill(&mut buffer, &mut next, 1);
        buffer.consume(2);
    }
}
