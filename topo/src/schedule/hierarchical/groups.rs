/// Which positions are in which group.
pub(super) struct Groups<'a> {
    sizes: &'a [u32],
    /// The position of the first rank of each group.
    starts: Vec<u32>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(sizes: &'a [u32]) -> Groups<'a> {
        let before = |sum: &mut u32, &size: &u32| {
            *sum += size;
            Some(*sum - size)
        };
        Groups { sizes, starts: sizes.iter().scan(0, before).collect() }
    }

    /// How many groups there are.
    pub(super) fn count(&self) -> u32 {
        self.sizes.len() as u32
    }

    /// How many ranks there are in all groups.
    pub(super) fn ranks(&self) -> u32 {
        self.sizes.iter().sum()
    }

    /// How many ranks a group has.
    pub(super) fn size(&self, group: u32) -> u32 {
        self.sizes[group as usize]
    }

    /// The positions of a group.
    pub(super) fn positions(&self, group: u32) -> std::ops::Range<u32> {
        let start = self.starts[group as usize];
        start..start + self.size(group)
    }

    /// The group of a position and its number in it.
    pub(super) fn find(&self, position: u32) -> (u32, u32) {
        let group = self.starts.partition_point(|&start| start <= position) - 1;
        (group as u32, position - self.starts[group])
    }

    pub(super) fn position(&self, group: u32, member: u32) -> u32 {
        self.starts[group as usize] + member
    }

    /// All groups but one.
    pub(super) fn others(&self, group: u32) -> impl Iterator<Item = u32> + use<> {
        (0..self.count()).filter(move |&other| other != group)
    }
}
