//! Rows of the tables `cgroup:limit`, limits of cgroups and what came of them, and `cgroup:member`, whom those of v1 limit.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use systape_bpf::values::v1_controller;
use systape_bpf::wire;
use systape_format::families::{CGROUP_LIMIT, CGROUP_MEMBER};
use systape_format::table::TableDef;
use systape_format::tables::Field;

use super::rows::Rows;
use super::world::World;
use crate::machine::cgroup_limits::{Controller, Hierarchy, Limits, Value};
use crate::tasks::TaskId;

/// Most processes whose cgroups are kept.
const MOST: usize = 65536;
/// Most cgroups that are read because a process came into them.
const MOST_ASKED: usize = 4096;

/// A process: its pid, and when it began.
type PidAndStart = (u32, u64);

/// Limits of cgroups, and whom those of v1 limit, as rows.
#[derive(Debug)]
pub(super) struct CgroupLimits {
    limit: Arc<TableDef>,
    member: Arc<TableDef>,
    hierarchies: Arc<[Hierarchy]>,
    /// Which cgroups of v1 limit a process.
    members: BTreeMap<PidAndStart, BTreeMap<Controller, Rc<[u8]>>>,
    /// Cgroups that were read since the recording began, with the numbers of their hierarchies.
    asked: FxHashSet<(u8, Vec<u8>)>,
    /// Some cgroup has a limit.
    any: bool,
}

impl Default for CgroupLimits {
    fn default() -> Self {
        Self {
            limit: Arc::new(CGROUP_LIMIT.clone()),
            member: Arc::new(CGROUP_MEMBER.clone()),
            hierarchies: Arc::default(),
            members: BTreeMap::new(),
            asked: FxHashSet::default(),
            any: false,
        }
    }
}

impl CgroupLimits {
    /// Stores the limits when the recording begins.
    pub(super) fn begin(&mut self, limits: Limits, ts: u64, world: &mut World, rows: &mut Rows) {
        self.hierarchies = limits.hierarchies;
        self.store(&limits.values, ts, rows);
        let threads = if limits.members.is_empty() { BTreeMap::new() } else { threads(world) };
        for (pid, controller, cgroup) in limits.members {
            if let Some((_, id)) = threads.range((pid, 0)..=(pid, u64::MAX)).next_back() {
                self.joined(*id, controller, cgroup.into(), ts, world, rows);
            }
        }
    }

    /// Stores what cgroups said.
    pub(super) fn store(&mut self, values: &[Value], ts: u64, rows: &mut Rows) {
        self.any |= !values.is_empty();
        for value in values {
            let fields = [
                Field::Bytes(value.controller.name().as_bytes()),
                Field::Bytes(&value.cgroup),
                Field::Bytes(value.name.as_bytes()),
                Field::Number(value.device),
                Field::Number(value.value),
            ];
            rows.beside(&self.limit, ts, &fields);
        }
    }

    /// A task came into a cgroup.
    pub(super) fn came(&mut self, c: &wire::Cgroup, path: &[u8], world: &mut World, rows: &mut Rows) {
        let number = (c.id >> v1_controller::SHIFT) as u8;
        let of = self.hierarchies.iter().find(|hierarchy| hierarchy.number == number);
        let Some(controllers) = of.map(|hierarchy| hierarchy.controllers.clone()) else { return };
        // a later thread is not its process
        if number != 0 && c.task.tid == c.task.pid {
            let id = world.tasks.find_or_add(&c.task);
            let cgroup: Rc<[u8]> = path.into();
            for controller in controllers {
                self.joined(id, controller, Rc::clone(&cgroup), c.ts, world, rows);
            }
        }
        let key = (number, path.to_vec());
        if path != b"/" && self.asked.len() < MOST_ASKED && !self.asked.contains(&key) {
            world.look_up_limits(Arc::clone(&self.hierarchies), Some(key.clone()));
            self.asked.insert(key);
        }
    }

    /// `controller` limits the process of `id` by this cgroup.
    fn joined(
        &mut self,
        id: TaskId,
        controller: Controller,
        cgroup: Rc<[u8]>,
        ts: u64,
        world: &mut World,
        rows: &mut Rows,
    ) {
        let process = process(world, id);
        if self.members.len() < MOST || self.members.contains_key(&process) {
            self.tell(id, controller, &cgroup, ts, world, rows);
            self.members.entry(process).or_default().insert(controller, cgroup);
        }
    }

    fn tell(&self, id: TaskId, controller: Controller, cgroup: &[u8], ts: u64, world: &mut World, rows: &mut Rows) {
        if world.tasks.is_target(id) {
            let task = Field::Task(rows.task(&mut world.tasks, id));
            let fields = [task, Field::Bytes(controller.name().as_bytes()), Field::Bytes(cgroup)];
            rows.beside(&self.member, ts, &fields);
        }
    }

    /// A process was made; it is where its parent is.
    pub(super) fn fork(&mut self, f: &wire::Fork, world: &mut World, rows: &mut Rows) {
        if self.members.is_empty() || f.child.id.tid != f.child.id.pid {
            return;
        }
        let Some(groups) = self.members.get(&(f.parent.pid, f.parent.leader_start)).cloned() else { return };
        let Some(id) = world.tasks.find(&f.child.id) else { return };
        for (controller, cgroup) in groups {
            self.joined(id, controller, cgroup, f.child.ts, world, rows);
        }
    }

    /// A thread ended.
    pub(super) fn exit(&mut self, e: &wire::Exit) {
        if e.group_dead != 0 {
            self.members.remove(&(e.id.pid, e.id.leader_start));
        }
    }

    /// A part of the tape begins that may stand alone: its limits are read anew.
    pub(super) fn checkpoint(&self, ts: u64, world: &mut World, rows: &mut Rows) {
        self.ask(world);
        if self.members.is_empty() {
            return;
        }
        let threads = threads(world);
        for (process, groups) in &self.members {
            let Some(id) = threads.get(process) else { continue };
            for (controller, cgroup) in groups {
                self.tell(*id, *controller, cgroup, ts, world, rows);
            }
        }
    }

    /// Requests what cgroups with limits say now, if there are any; whether there are.
    pub(super) fn ask(&self, world: &mut World) -> bool {
        self.any && world.look_up_limits(Arc::clone(&self.hierarchies), None)
    }
}

/// A living thread of each process, the first if that lives.
fn threads(world: &World) -> BTreeMap<PidAndStart, TaskId> {
    let mut threads = BTreeMap::new();
    for (id, entry) in world.tasks.alive() {
        let thread = threads.entry(process(world, id)).or_insert(id);
        if entry.task.tid == entry.task.pid {
            *thread = id;
        }
    }
    threads
}

fn process(world: &World, id: TaskId) -> PidAndStart {
    let task = &world.tasks.get(id).task;
    (task.pid, task.leader_start_ns)
}
