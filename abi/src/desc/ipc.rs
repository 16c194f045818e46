//! System V IPC and POSIX message queues.

use super::calls;
use super::structs::Struct::Timespec;
use crate::flags::{IPC, MSGCTL, MSGOP, OPEN, SEMCTL, SHMAT, SHMCTL};

calls! {
    shmget(key: Hex32, size: Size, shmflg: Flags(&IPC)) -> Int;
    shmat(shmid: Int, shmaddr: Ptr, shmflg: Flags(&SHMAT)) -> Ptr;
    shmctl(shmid: Int, cmd: Flags(&SHMCTL), buf: Ptr) -> Int;
    semget(key: Hex32, nsems: Int, semflg: Flags(&IPC)) -> Int;
    semop(semid: Int, tsops: Ptr, nsops: UInt) -> Int;
    semctl(semid: Int, semnum: Int, cmd: Flags(&SEMCTL), arg: Hex) -> Int;
    shmdt(shmaddr: Ptr) -> Int;
    msgget(key: Hex32, msgflg: Flags(&IPC)) -> Int;
    msgsnd(msqid: Int, msgp: Ptr, msgsz: Size, msgflg: Flags(&MSGOP)) -> Int;
    msgrcv(msqid: Int, msgp: Ptr, msgsz: Size, msgtyp: Long, msgflg: Flags(&MSGOP)) -> Int;
    msgctl(msqid: Int, cmd: Flags(&MSGCTL), buf: Ptr) -> Int;
    semtimedop(semid: Int, tsops: Ptr, nsops: UInt, timeout: In(Timespec)) -> Int;
    mq_open(u_name: FileName, oflag: Flags(&OPEN), mode: Mode, u_attr: Ptr) -> Fd, NewFd;
    mq_unlink(u_name: FileName) -> Int;
    mq_timedsend(mqdes: Fd, u_msg_ptr: BufIn{len_arg: 2}, msg_len: Size, msg_prio: UInt, u_abs_timeout: In(Timespec)) -> Int;
    mq_timedreceive(mqdes: Fd, u_msg_ptr: BufOut, msg_len: Size, u_msg_prio: Ptr, u_abs_timeout: In(Timespec)) -> Int;
    mq_notify(mqdes: Fd, u_notification: Ptr) -> Int;
    mq_getsetattr(mqdes: Fd, u_mqstat: Ptr, u_omqstat: Ptr) -> Int;
}
